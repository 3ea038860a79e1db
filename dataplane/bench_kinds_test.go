package dataplane_test

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// kindsFlows is how many connections there are between the two hosts of BenchmarkFrameKinds: as many as can be paired.
const kindsFlows = 256

// kindsFrame is a RoCEv2 packet over IPv4 of connection n, from the fabric's host or the WAN's. PSN and payload are the caller's to write.
func kindsFrame(from int, op packet.Opcode, destQP, n uint32, payload int) []byte {
	const l4 = packet.EthernetLen + packet.IPv4Len
	headers := l4 + packet.UDPLen + packet.BTHLen + op.HeadersLen()
	b := make([]byte, headers+payload+packet.ICRCLen)
	binary.BigEndian.PutUint16(b[12:], packet.EtherTypeIPv4)
	hosts := [2]packet.Addr{address("198.18.0.1"), address("198.19.0.1")}
	ip := packet.IPv4Header{TotalLen: uint16(len(b) - packet.EthernetLen), DSCP: 26, TTL: 64, Proto: packet.ProtoUDP, Src: hosts[from], Dst: hosts[1-from]}
	ip.Put(b[packet.EthernetLen:])
	a, z := kindsQPs(n)
	udp := packet.UDPHeader{SrcPort: linuxPort(a, z), DstPort: packet.RoCEv2Port, Length: uint16(len(b) - l4)}
	udp.Put(b[l4:])
	bth := packet.BTH{Opcode: op, PKey: packet.DefaultPKey, DestQP: destQP, AckReq: op == packet.RCSendOnly}
	if op == packet.CNP {
		bth.Flags = packet.BECN
	}
	bth.Put(b[l4+packet.UDPLen:])
	if op == packet.UDSendOnly {
		binary.BigEndian.PutUint32(b[l4+packet.UDPLen+packet.BTHLen+4:], packet.GSIQP)
	}
	return b
}

// kindsQPs are the QPs of connection n, the fabric's first.
func kindsQPs(n uint32) (a, z uint32) { return 0x1000 + 7*n, 0x2000 + 5*n }

// linuxPort is Linux's UDP source port for a pair of QPs.
func linuxPort(a, z uint32) uint16 {
	v := uint64(a) * uint64(z)
	v ^= v >> 20
	v ^= v >> 40
	return uint16(v&0x3fff^v>>14&0x3f) | 0xc000
}

func setPSN(b []byte, psn uint32) {
	at := packet.EthernetLen + packet.IPv4Len + packet.UDPLen + 8
	binary.BigEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:])&0xff000000|psn&0xffffff)
}

func setDestQP(b []byte, qp uint32) {
	at := packet.EthernetLen + packet.IPv4Len + packet.UDPLen + 4
	binary.BigEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:])&0xff000000|qp&0xffffff)
}

// mad is a frame to QP 1 with a message of RDMA-CM.
func mad(attribute uint16) func(uint32) []byte {
	return func(uint32) []byte {
		b := kindsFrame(wan, packet.UDSendOnly, packet.GSIQP, 0, packet.MADLen)
		m := b[madAt:]
		copy(m, []byte{1, 7, 2, 3})
		binary.BigEndian.PutUint16(m[16:], attribute)
		src := b[packet.EthernetLen+12:]
		copy(m[24+56+10:], []byte{0xff, 0xff, src[0], src[1], src[2], src[3]})
		copy(m[24+72+10:], []byte{0xff, 0xff, src[4], src[5], src[6], src[7]})
		return b
	}
}

const madAt = packet.EthernetLen + packet.IPv4Len + packet.UDPLen + packet.BTHLen + packet.DETHLen

// another makes a message different from others: its communication IDs and its QP.
func another(b []byte, number uint32) {
	m := b[madAt+24:]
	binary.BigEndian.PutUint32(m, number)
	binary.BigEndian.PutUint32(m[4:], number)
	binary.BigEndian.PutUint32(m[12:], (0x5000+number%4096)<<8) // of a REP
	binary.BigEndian.PutUint32(m[32:], (0x5000+number%4096)<<8) // of a REQ
}

// kindsBackend receives 64 frames of one kind a step, by one port.
type kindsBackend struct {
	batch  burst.Batch
	frames []burst.Frame
	port   int
	edit   func(b []byte, number uint32)
	number uint32
	now    int64
}

const kindsRoom = 512

func newKindsBackend() *kindsBackend {
	memory, _ := testkit.Heap(2 * burst.MaxSize * kindsRoom)
	k := &kindsBackend{now: testkit.Epoch}
	k.batch = burst.Batch{Base: unsafe.Pointer(unsafe.SliceData(memory)), Ports: make([]burst.Port, 2),
		Free: make([]uint64, 0, 4*burst.MaxSize), Spare: make([]burst.Frame, burst.MaxSize)}
	for i := range k.batch.Ports {
		k.batch.Ports[i].Tx = make([]burst.Frame, 0, burst.MaxSize)
	}
	for i := range burst.MaxSize {
		k.frames = append(k.frames, burst.Frame{Buf: uint64(i + 1), Data: uint64(i * kindsRoom)})
		k.batch.Spare[i] = burst.Frame{Buf: uint64(burst.MaxSize + i + 1), Data: uint64((burst.MaxSize + i) * kindsRoom), Head: kindsRoom}
	}
	return k
}

func (k *kindsBackend) Batch() *burst.Batch { return &k.batch }

func (k *kindsBackend) Exchange() int64 {
	b := &k.batch
	for i := range b.Ports {
		b.Ports[i].Sent, b.Ports[i].Rx = len(b.Ports[i].Tx), nil
	}
	b.Free, b.Spare = b.Free[:0], b.Spare[:cap(b.Spare)]
	k.now += 10_000
	return k.now
}

// load puts copies of a frame where the next steps receive them.
func (k *kindsBackend) load(port int, frame func(i uint32) []byte, edit func(b []byte, number uint32)) {
	k.port, k.edit = port, edit
	for i := range k.frames {
		b := frame(uint32(i))
		k.frames[i].Len, k.frames[i].Head = uint32(len(b)), uint32(len(b))
		copy(k.bytes(i), b)
	}
}

func (k *kindsBackend) bytes(i int) []byte {
	f := k.frames[i]
	f.Head = kindsRoom
	return k.batch.Bytes(f)
}

// receive has the next step receive 64 frames, each edited.
func (k *kindsBackend) receive() {
	for i := range k.frames {
		k.edit(k.bytes(i), k.number)
		k.number++
	}
	k.batch.Ports[k.port].Rx = k.frames
}

// kindsStep is a step with frames: Exchange clears what was received, so the frames come after it.
type kindsStep struct{ *kindsBackend }

func (k kindsStep) Exchange() int64 {
	now := k.kindsBackend.Exchange()
	if k.edit != nil {
		k.receive()
	}
	return now
}

// BenchmarkFrameKinds is what a frame of each kind costs the worker, in bursts of 64 of nothing else, while 256 connections between the two
// hosts are paired: what anyone can make the gateway spend by sending such frames. No kind may cost more than twice a data packet.
func BenchmarkFrameKinds(b *testing.B) {
	conn := func(n uint32) (a, z uint32) { return kindsQPs(n % kindsFlows) }
	request := func(i uint32) []byte {
		_, z := conn(i)
		return kindsFrame(fabric, packet.RCSendOnly, z, i%kindsFlows, 64)
	}
	ack := func(i uint32) []byte {
		a, _ := conn(i)
		return kindsFrame(wan, packet.RCAcknowledge, a, i%kindsFlows, 0)
	}
	toGSI := func(uint32) []byte { return kindsFrame(wan, packet.UDSendOnly, packet.GSIQP, 0, packet.MADLen) }
	for _, c := range []struct {
		name  string
		port  int
		frame func(i uint32) []byte
		edit  func(b []byte, number uint32)
	}{
		{"data", fabric, request, nil},
		{"data-retransmitted", fabric, request, func(b []byte, number uint32) { setPSN(b, 5+number*7%40) }},
		{"ack", wan, ack, func(b []byte, number uint32) { setPSN(b, 180+number/burst.MaxSize%16) }},
		{"ack-beyond-what-was-sent", wan, ack, nil},
		{"cnp", wan, func(i uint32) []byte { a, _ := conn(i); return kindsFrame(wan, packet.CNP, a, i%kindsFlows, 16) }, func([]byte, uint32) {}},
		{"req", wan, mad(0x10), another},
		{"rep", wan, mad(0x13), another},
		{"dreq", wan, mad(0x15), another},
		{"mra", wan, mad(0x11), another},
		{"junk-to-qp1", wan, toGSI, func([]byte, uint32) {}},
		{"ack-forged-to-live-qps", wan, ack, func(b []byte, number uint32) { setPSN(b, number*0x3779b9) }},
		{"ack-to-invented-qps", wan, ack, func(b []byte, number uint32) { setDestQP(b, 0x800000+number); setPSN(b, number*0x3779b9) }},
		{"request-to-invented-qps", wan, func(i uint32) []byte { a, _ := conn(i); return kindsFrame(wan, packet.RCSendOnly, a, i, 64) },
			func(b []byte, number uint32) { setDestQP(b, 0x800000+number); setPSN(b, number*0x3779b9) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := notifying(byAnything...)
			for i := range p.Ports {
				p.Ports[i].Thresholds = congestion.Thresholds{KMin: 1 << 40, KMax: 1 << 41}
			}
			backend := newKindsBackend()
			r := testkit.New(b, testkit.Setup{Policy: p, Rate: 400e9, Flows: 1 << 16, Change: func(c *dataplane.Config) {
				c.Backends[0], c.Paired = kindsStep{backend}, 4096
			}})
			w := r.Plane.Worker(0)
			psn := uint32(0)
			each := func(b []byte, _ uint32) { setPSN(b, psn) }
			for range 200 { // until all are paired
				for first := uint32(0); first < kindsFlows; first += burst.MaxSize {
					at := func(make func(uint32) []byte) func(uint32) []byte {
						return func(i uint32) []byte { return make(first + i) }
					}
					backend.load(fabric, at(request), each)
					w.Step()
					backend.load(wan, at(ack), each)
					w.Step()
				}
				psn++
			}
			known := w.PairingStats().Confirmed
			if known[5] != 2*kindsFlows {
				b.Fatalf("%v flows are paired", known)
			}
			edit := c.edit
			if edit == nil {
				steps := uint32(0)
				edit = func(b []byte, _ uint32) { setPSN(b, psn+steps/burst.MaxSize); steps++ }
			}
			backend.load(c.port, c.frame, edit)
			for b.Loop() {
				w.Step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*burst.MaxSize), "ns/packet")
		})
	}
}
