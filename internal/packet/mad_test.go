package packet

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// mad makes a communication management datagram.
func mad(attribute CMAttribute, put func(b []byte)) []byte {
	b := make([]byte, MADLen)
	b[0], b[1], b[2], b[3] = 1, 7, 2, 3
	binary.BigEndian.PutUint16(b[16:], uint16(attribute))
	if put != nil {
		put(b[24:])
	}
	return b
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(i)
	}
}

func TestDecodeCM(t *testing.T) {
	gid := func(from int) Addr {
		var b [16]byte
		for i := range b {
			b[i] = byte(from + i)
		}
		return AddrFrom16(b[:])
	}
	for _, want := range []CM{
		{Attribute: CMREQ, LocalComm: 0x00010203, QPN: 0x202122, PSN: 0x2c2d2e, FlowLabel: 0x58595, LocalGID: gid(56), RemoteGID: gid(72)},
		{Attribute: CMMRA, LocalComm: 0x00010203, RemoteComm: 0x04050607},
		{Attribute: CMREJ, LocalComm: 0x00010203, RemoteComm: 0x04050607},
		{Attribute: CMREP, LocalComm: 0x00010203, RemoteComm: 0x04050607, QPN: 0x0c0d0e, PSN: 0x141516},
		{Attribute: CMRTU, LocalComm: 0x00010203, RemoteComm: 0x04050607},
		{Attribute: CMDREQ, LocalComm: 0x00010203, RemoteComm: 0x04050607, QPN: 0x08090a},
		{Attribute: CMDREP, LocalComm: 0x00010203, RemoteComm: 0x04050607},
		{Attribute: CMSIDRREQ, LocalComm: 0x00010203},
		{Attribute: CMSIDRREP, LocalComm: 0x00010203, QPN: 0x08090a},
	} {
		if got, ok := DecodeCM(mad(want.Attribute, fill)); !ok || got != want {
			t.Errorf("%#x: got %+v, %v, want %+v", want.Attribute, got, ok, want)
		}
	}
}

func TestDecodeCMRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":            nil,
		"an octet too short": mad(CMREQ, fill)[:MADLen-1],
		"LAP":                mad(0x19, fill),
		"ClassPortInfo":      mad(1, fill),
	} {
		if m, ok := DecodeCM(b); ok {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for i := range 4 {
		b := mad(CMREQ, fill)
		b[i]++
		if m, ok := DecodeCM(b); ok {
			t.Errorf("octet %d changed: %+v", i, m)
		}
	}
}

// TestCMOfCaptures: the connection that the captures' truth has, as REQ, REP, RTU, DREQ and DREP tell it.
func TestCMOfCaptures(t *testing.T) {
	for _, c := range []struct {
		file               string
		client, server     string
		clientQP, serverQP uint32
		clientPSN, label   uint32
	}{
		{"cm_rping_v4", "198.18.0.2", "198.18.0.1", 480, 120, 0x745f7c, 146475},
		{"cm_rping_v6", "fd00:18::2", "fd00:18::1", 488, 128, 0x0ff27b, 355821},
	} {
		var got []CM
		for _, b := range pcap.Octets(pcap.Read(t, capturesDir+"/"+c.file+".pcap")) {
			var p Parsed
			Parse(b, uint32(len(b)), &p)
			if m, ok := CMMessage(b, &p); ok {
				got = append(got, m)
			}
		}
		if len(got) != 5 {
			t.Fatalf("%s: %d messages", c.file, len(got))
		}
		client, server := AddrFrom(netip.MustParseAddr(c.client)), AddrFrom(netip.MustParseAddr(c.server))
		req, rep := got[0], got[1]
		want := []CM{
			{Attribute: CMREQ, LocalComm: req.LocalComm, QPN: c.clientQP, PSN: c.clientPSN, FlowLabel: c.label, LocalGID: client, RemoteGID: server},
			{Attribute: CMREP, LocalComm: rep.LocalComm, RemoteComm: req.LocalComm, QPN: c.serverQP, PSN: rep.PSN},
			{Attribute: CMRTU, LocalComm: req.LocalComm, RemoteComm: rep.LocalComm},
			{Attribute: CMDREQ, LocalComm: req.LocalComm, RemoteComm: rep.LocalComm, QPN: c.serverQP},
			{Attribute: CMDREP, LocalComm: rep.LocalComm, RemoteComm: req.LocalComm},
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: message %d is %+v, want %+v", c.file, i+1, got[i], want[i])
			}
		}
	}
}

func TestRoles(t *testing.T) {
	for o, want := range map[Opcode]Role{
		RCSendFirst: Request, RCWriteOnly: Request, RCReadRequest: ReadRequest, RCCmpSwap: Request, RCAcknowledge: Response,
		RCReadRespMiddle: Response, RCAtomicAcknowledge: Response, UCWriteLast: Request, XRCReadRequest: ReadRequest, XRCAcknowledge: Response,
		UDSendOnly: NoRole, CNP: NoRole, RDAcknowledge: NoRole, 0xff: NoRole, 0x2c: NoRole,
	} {
		if got := o.Role(); got != want {
			t.Errorf("%v has role %d, want %d", o, got, want)
		}
	}
}

// cmSeeds are a message of each attribute, and the beginning of one.
func cmSeeds() (all [][]byte) {
	for a := CMREQ; a <= CMSIDRREP; a++ {
		all = append(all, mad(a, fill))
	}
	return append(all, []byte{1, 7, 2, 3})
}

// FuzzDecodeCM: no input panics, and what is decoded is within its 24 bits.
func FuzzDecodeCM(f *testing.F) {
	for _, b := range cmSeeds() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { cmBody(t, b) })
}

// cmBody is FuzzDecodeCM; it returns whether b was decoded.
func cmBody(t testing.TB, b []byte) bool {
	m, ok := DecodeCM(b)
	if ok && (m.QPN >= 1<<24 || m.PSN >= 1<<24) {
		t.Fatalf("%+v", m)
	}
	return ok
}
