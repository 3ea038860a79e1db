package packet

import (
	"bytes"
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
	const id, comm, remote = 0x0001020304050607, 0x00010203, 0x04050607
	for _, want := range []CM{
		{Attribute: CMREQ, LocalComm: comm, QPN: 0x202122, PSN: 0x2c2d2e, FlowLabel: 0x58595, LocalGID: gid(56), RemoteGID: gid(72),
			ServiceID: 0x08090a0b0c0d0e0f, GUID: 0x1011121314151617, ResponderResources: 0x23, InitiatorDepth: 0x27, Transport: 0x2b >> 1 & 3,
			Timeout: 0x2f >> 3, MTU: 3, Retries: 3, Extended: 0x33 & 7},
		{Attribute: CMMRA, LocalComm: comm, RemoteComm: remote, Answers: 0, Timeout: 1},
		{Attribute: CMREJ, LocalComm: comm, RemoteComm: remote, Reason: 0x0a0b},
		{Attribute: CMREP, LocalComm: comm, RemoteComm: remote, QPN: 0x0c0d0e, PSN: 0x141516, ResponderResources: 0x18, InitiatorDepth: 0x19,
			GUID: 0x1c1d1e1f20212223},
		{Attribute: CMRTU, LocalComm: comm, RemoteComm: remote},
		{Attribute: CMDREQ, LocalComm: comm, RemoteComm: remote, QPN: 0x08090a},
		{Attribute: CMDREP, LocalComm: comm, RemoteComm: remote},
		{Attribute: CMSIDRREQ, LocalComm: comm, ServiceID: 0x08090a0b0c0d0e0f},
		{Attribute: CMSIDRREP, LocalComm: comm, QPN: 0x08090a, ServiceID: 0x0c0d0e0f10111213, QKey: 0x14151617},
		{Attribute: CMLAP, LocalComm: comm, RemoteComm: remote, QPN: 0x0c0d0e, LocalGID: gid(24), RemoteGID: gid(40)},
		{Attribute: CMAPR, LocalComm: comm, RemoteComm: remote},
	} {
		b := mad(want.Attribute, fill)
		fill(b[8:16])
		want.TransactionID = id
		if got, ok := DecodeCM(b); !ok || got != want {
			t.Errorf("%#x: got %+v, %v, want %+v", want.Attribute, got, ok, want)
		}
	}
}

// TestCMService: RDMA-CM's header is read where the service ID is one of RDMA-CM's, and nowhere else.
func TestCMService(t *testing.T) {
	for _, attribute := range []CMAttribute{CMREQ, CMSIDRREQ} {
		for _, m := range []CM{
			{ServiceID: ServiceID(ProtoTCP, 7471), SourcePort: 40000, LocalGID: AddrFrom4([]byte{10, 0, 0, 1}), RemoteGID: AddrFrom4([]byte{10, 0, 0, 2})},
			{ServiceID: ServiceID(ProtoUDP, 1), SourcePort: 1, LocalGID: Addr{1, 2}, RemoteGID: Addr{3, 4}},
		} {
			m.Attribute = attribute
			var b [MADLen]byte
			m.Put(b[:])
			if got, ok := DecodeCM(b[:]); !ok || got != m {
				t.Errorf("%#x: got %+v, %v, want %+v", attribute, got, ok, m)
			}
			b[MADHeaderLen+8] = 1 // the first octet of the service ID
			want := m
			want.ServiceID, want.SourcePort = m.ServiceID|1<<56, 0
			if attribute == CMSIDRREQ {
				want.LocalGID, want.RemoteGID = Addr{}, Addr{}
			}
			if got, ok := DecodeCM(b[:]); !ok || got != want {
				t.Errorf("%#x, another service: got %+v, %v, want %+v", attribute, got, ok, want)
			}
		}
	}
}

func TestDecodeCMRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":            nil,
		"an octet too short": mad(CMREQ, fill)[:MADLen-1],
		"none":               mad(0x1b, fill),
		"less than REQ":      mad(0x0f, fill),
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

// capturedCM are the communication management messages of a capture, in their order, as decoded and as bytes.
func capturedCM(t *testing.T, file string) (messages []CM, octets [][]byte) {
	t.Helper()
	for _, b := range pcap.Octets(pcap.Read(t, capturesDir+"/"+file+".pcap")) {
		var p Parsed
		Parse(b, uint32(len(b)), &p)
		if m, ok := CMMessage(b, &p); ok {
			messages, octets = append(messages, m), append(octets, b[p.Payload:][:MADLen])
		}
	}
	if len(messages) != 5 {
		t.Fatalf("%s: %d messages, expected 5", file, len(messages))
	}
	return messages, octets
}

// TestCMOfCaptures: REQ, REP, RTU, DREQ and DREP of Soft-RoCE say of the connection what is known of it, and Put writes the same bytes.
func TestCMOfCaptures(t *testing.T) {
	const clientGUID, serverGUID = 0xfffe180002, 0xfffe180001
	for _, c := range []struct {
		file               string
		client, server     string
		clientQP, serverQP uint32
		clientPSN, label   uint32
		source             uint16
	}{
		{"cm_rping_v4", "198.18.0.2", "198.18.0.1", 480, 120, 0x745f7c, 146475, 0x943e},
		{"cm_rping_v6", "fd00:18::2", "fd00:18::1", 488, 128, 0x0ff27b, 355821, 0xae9f},
	} {
		got, octets := capturedCM(t, c.file)
		client, server := AddrFrom(netip.MustParseAddr(c.client)), AddrFrom(netip.MustParseAddr(c.server))
		req, rep := got[0], got[1]
		want := []CM{
			{Attribute: CMREQ, LocalComm: req.LocalComm, QPN: c.clientQP, PSN: c.clientPSN, FlowLabel: c.label, LocalGID: client, RemoteGID: server,
				ServiceID: req.ServiceID, GUID: clientGUID, SourcePort: c.source, MTU: 5, Timeout: 20, Retries: 15},
			{Attribute: CMREP, LocalComm: rep.LocalComm, RemoteComm: req.LocalComm, QPN: c.serverQP, PSN: rep.PSN, GUID: serverGUID},
			{Attribute: CMRTU, LocalComm: req.LocalComm, RemoteComm: rep.LocalComm},
			{Attribute: CMDREQ, LocalComm: req.LocalComm, RemoteComm: rep.LocalComm, QPN: c.serverQP},
			{Attribute: CMDREP, LocalComm: rep.LocalComm, RemoteComm: req.LocalComm},
		}
		if req.ServiceID&^0xffff != ServiceID(ProtoTCP, 0) {
			t.Errorf("%s: service ID %#x, expected one of RDMA-CM", c.file, req.ServiceID)
		}
		for i := range want {
			want[i].TransactionID = got[i].TransactionID
			want[i].ResponderResources, want[i].InitiatorDepth = got[i].ResponderResources, got[i].InitiatorDepth
			if got[i] != want[i] {
				t.Errorf("%s: message %d is %+v, want %+v", c.file, i+1, got[i], want[i])
			}
			var b [MADLen]byte
			fill(b[:])
			if got[i].Put(b[:]); !bytes.Equal(b[:], octets[i]) {
				t.Errorf("%s: message %d is written as\n%x, captured\n%x", c.file, i+1, b, octets[i])
			}
		}
	}
}

func TestRoles(t *testing.T) {
	for o, want := range map[Opcode]Role{
		RCSendFirst: Request, RCWriteOnly: Request, RCReadRequest: ReadRequest, RCCmpSwap: Request, RCAcknowledge: Response,
		RCReadRespMiddle: Response, RCAtomicAcknowledge: Response, UC | RCWriteLast: Request, XRC | RCReadRequest: ReadRequest, XRC | RCAcknowledge: Response,
		UDSendOnly: NoRole, CNP: NoRole, RD | RCAcknowledge: NoRole, 0xff: NoRole, 0x2c: NoRole,
	} {
		if got := o.Role(); got != want {
			t.Errorf("%v has role %d, want %d", o, got, want)
		}
	}
}

// cmSeeds are a message of each attribute, one of RDMA-CM's service, and the beginning of one.
func cmSeeds() (all [][]byte) {
	for a := CMREQ; a <= CMAPR; a++ {
		all = append(all, mad(a, fill))
	}
	var b [MADLen]byte
	(&CM{Attribute: CMSIDRREQ, ServiceID: ServiceID(ProtoUDP, 5), LocalGID: Addr{1, 2}, RemoteGID: Addr{3, 4}}).Put(b[:])
	return append(all, b[:], []byte{1, 7, 2, 3})
}

// FuzzDecodeCM: no input panics; what is decoded is within its bits, and is decoded again from what Put makes of it.
func FuzzDecodeCM(f *testing.F) {
	for _, b := range cmSeeds() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { cmBody(t, b) })
}

// cmBody is FuzzDecodeCM; it returns whether b was decoded.
func cmBody(t testing.TB, b []byte) bool {
	m, ok := DecodeCM(b)
	if !ok {
		return false
	}
	if m.QPN >= 1<<24 || m.PSN >= 1<<24 || m.FlowLabel >= 1<<20 || m.Answers > 3 || m.Transport > 3 || m.Extended > 7 || m.MTU > 15 || m.Retries > 15 || m.Timeout > 31 {
		t.Fatalf("%+v", m)
	}
	if m.Attribute == CMSIDRREQ && m.LocalGID.Is4() != m.RemoteGID.Is4() {
		return true // an IPv6 header with one IPv4-mapped address: Put has no way to write it
	}
	var c [MADLen]byte
	m.Put(c[:])
	if again, ok := DecodeCM(c[:]); !ok || again != m {
		t.Fatalf("decoded %+v, written and decoded again %+v, %v", m, again, ok)
	}
	return true
}
