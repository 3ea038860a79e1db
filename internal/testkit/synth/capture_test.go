package synth

import (
	"encoding/json"
	"maps"
	"os"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

const captures = "../../../testdata/captures/"

// captured is a frame of real traffic, and the truth about it as in an Event.
type captured struct {
	octets []byte
	Event
}

// readCapture reads the RoCEv2 frames of a capture of real traffic. The client's side is taken for the fabric's. Packets of QP 1
// have Conn -1.
func readCapture(t *testing.T, name string) (frames []captured, conns []Conn) {
	t.Helper()
	var truth struct {
		Connections []struct {
			ClientIP  string `json:"client_ip"`
			ClientQPN uint32 `json:"client_qpn"`
			ServerQPN uint32 `json:"server_qpn"`
		}
	}
	text, err := os.ReadFile(captures + name + ".json")
	if err == nil {
		err = json.Unmarshal(text, &truth)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range truth.Connections {
		conns = append(conns, Conn{QP: [2]uint32{c.ClientQPN, c.ServerQPN}})
	}
	for _, f := range pcap.Read(t, captures+name+".pcap") {
		b := f.Octets
		c := captured{octets: b, Event: Event{Conn: -1, Time: f.Time}}
		p := &c.Packet
		if packet.Parse(b, uint32(len(b)), p); p.Kind != packet.RoCEv2 {
			continue
		}
		c.From = Fabric
		if p.Src.Netip().String() != truth.Connections[0].ClientIP {
			c.From = WAN
		}
		for i := range conns {
			if conns[i].QP[1-c.From] == p.DestQP {
				c.Conn = int32(i)
				conns[i].Port[c.From] = p.SrcPort
			}
		}
		c.readExtended()
		frames = append(frames, c)
	}
	return frames, conns
}

func (c *captured) readExtended() {
	p := &c.Packet
	h := p.Opcode.Headers()
	bth := packet.DecodeBTH(c.octets[p.BTH:])
	c.AckReq, c.Pad = bth.AckReq, bth.PadCount
	if h&packet.HasAETH != 0 {
		a := packet.DecodeAETH(c.octets[p.Ext()+p.Opcode.Offset(packet.HasAETH):])
		c.Syndrome, c.MSN = a.Syndrome, a.MSN
	}
	if h&packet.HasRETH != 0 {
		c.DMALength = packet.DecodeRETH(c.octets[p.Ext()+p.Opcode.Offset(packet.HasRETH):]).DMALength
	}
	if p.DestQP == packet.GSIQP {
		c.MAD = (*[packet.MADLen]byte)(c.octets[p.Payload:])
	}
}

// TestCapturesKeepTheRules runs the checker over real traffic: real devices follow the rules that the generator must follow.
func TestCapturesKeepTheRules(t *testing.T) {
	for name, mtu := range map[string]int{"rc_write_v4": 1024, "rc_write_q8_v4": 1024, "rc_read_v4": 1024, "rc_send_v6": 1024,
		"rc_pingpong_v6": 1024, "cm_rping_v4": 4096, "cm_rping_v6": 4096} {
		frames, conns := readCapture(t, name)
		c := newChecker(mtu, true)
		var start [2]uint32
		known := map[[2]int32]bool{}
		starts := make([][2]uint32, len(conns))
		for i := range frames {
			f := &frames[i]
			if f.Conn < 0 {
				continue
			}
			start = starts[f.Conn]
			op := f.Packet.Opcode & 0x1f
			if key := [2]int32{f.Conn, int32(f.From)}; (op <= 0x0c) && !known[key] {
				known[key] = true
				starts[f.Conn][f.From] = f.Packet.PSN
				start = starts[f.Conn]
			}
			if op <= 0x0c { // there are some, though nothing was lost
				s := c.end(f.Conn, f.From, start[f.From])
				f.Resent = s.place(f.Packet.PSN) < int(s.high)
			}
			if err := c.check(&f.Event, start); err != nil {
				t.Errorf("%s: packet %d: %v", name, i+1, err)
			}
		}
		if c.counts["request"] == 0 || c.counts["ACK"]+c.counts["read"] == 0 {
			t.Errorf("%s: %v", name, c.counts)
		}
	}
}

// look is what can be compared of packets of different runs.
type look struct {
	opcode packet.Opcode
	from   End
	ackReq bool
	ecn    uint8
	length uint32
}

// TestLikeCaptures makes the traffic of the captures again and wants as many packets of each look.
func TestLikeCaptures(t *testing.T) {
	all := func(octets int) [2]int { return [2]int{octets, octets} }
	for _, c := range []struct {
		name string
		Config
	}{
		{"rc_write_v4", Config{Messages: 40, Sizes: all(16384)}},
		{"rc_write_q8_v4", Config{Connections: 8, Messages: 12, Sizes: all(8192)}},
		{"rc_read_v4", Config{Messages: 40, Sizes: all(16384), Mix: Mix{Read: 1}}},
		{"rc_send_v6", Config{Messages: 30, Sizes: all(10000), Mix: Mix{Send: 1}, IPv6: true}},
		{"uc_pingpong_v4", Config{Messages: 50, Sizes: all(4096), Mix: Mix{Send: 1}, Transports: Transports{UC: 1}, Requesters: FromBoth, NotECT: true}},
		{"ud_pingpong_v6", Config{Messages: 50, Sizes: all(1024), Mix: Mix{Send: 1}, Transports: Transports{UD: 1}, NotECT: true, IPv6: true}},
	} {
		if c.Connections == 0 {
			c.Connections = 1
		}
		c.Requesters = max(c.Requesters, FromFabric)
		c.Delay[WAN] = 5000
		want, got := map[look]int{}, map[look]int{}
		frames, _ := readCapture(t, c.name)
		for i := range frames {
			want[frames[i].look()]++
		}
		tr := New(c.Config)
		for e, ok := tr.Next(); ok; e, ok = tr.Next() {
			got[e.look()]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got  %v\nwant %v", c.name, got, want)
		}
	}
}

func (e *Event) look() look {
	return look{e.Packet.Opcode, e.From, e.AckReq, e.Packet.ECN, e.Packet.IPEnd}
}

// TestCapturedPorts: which rule the source ports of real traffic follow.
func TestCapturedPorts(t *testing.T) {
	for _, name := range []string{"rc_write_v4", "rc_write_q8_v4", "rc_read_v4", "rc_send_v6", "rc_pingpong_v6", "uc_pingpong_v4"} {
		_, conns := readCapture(t, name)
		for _, c := range conns {
			want := packet.SourcePort(c.QP[Fabric], c.QP[WAN])
			if c.Port != [2]uint16{want, want} {
				t.Errorf("%s: QPs %v have ports %v, want %d", name, c.QP, c.Port, want)
			}
		}
	}
	frames, conns := readCapture(t, "ud_pingpong_v6")
	for end := range conns[0].Port {
		if got, want := conns[0].Port[end], packet.SoftRoCEPort(conns[0].QP[end]); got != want {
			t.Errorf("UD QP %d of %d frames has port %d, want %d", conns[0].QP[end], len(frames), got, want)
		}
	}
	for _, name := range []string{"cm_rping_v4", "cm_rping_v6"} {
		frames, conns := readCapture(t, name)
		label := uint32(frames[0].MAD[packet.MADHeaderLen+88])<<12 | uint32(frames[0].MAD[packet.MADHeaderLen+89])<<4 | uint32(frames[0].MAD[packet.MADHeaderLen+90])>>4
		if want := packet.LabelPort(label); conns[0].Port != [2]uint16{want, want} || frames[0].Packet.SrcPort != packet.SoftRoCEPort(packet.GSIQP) {
			t.Errorf("%s: ports %v, want %d; of QP 1 %d, want %d", name, conns[0].Port, want, frames[0].Packet.SrcPort, packet.SoftRoCEPort(packet.GSIQP))
		}
	}
}

// TestSymmetricPort has vectors that were computed by others.
func TestSymmetricPort(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want uint16
	}{{100, 200, 52769}, {17, 18, 49458}, {280, 210, 58803}, {0xABCDEF, 0x123456, 50120}} {
		if got := packet.SourcePort(c.a, c.b); got != c.want || packet.SourcePort(c.b, c.a) != c.want {
			t.Errorf("port of %d and %d is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
