package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// traffic describes a capture: one frame of each flow, in random order.
type traffic struct {
	flows   int
	first   int // number of the first flow: captures with other numbers share none
	v6      bool
	payload int  // bytes of data a packet
	imix    bool // frames of imix's lengths, in turn; payload isn't used
	cnps    bool // the frames are the receivers' CNPs to the senders of the flows, IPv4 without a tag
}

// Smallest payload of a packet that carries data: with it a RoCEv2 frame over IPv4 has 62 bytes, 66 with FCS.
const smallest = 4

// hosts is the number of senders; each has flows to as many receivers as needed.
const hosts = 4096

// write makes the capture file, the same one every time.
func (t traffic) write(path string) error {
	all := [][]byte{t.frame()}
	if t.imix {
		all = nil
		for _, length := range imix {
			t.payload = smallest + max(length-len(traffic{payload: smallest}.frame()), 0)
			all = append(all, t.frame())
		}
	}
	return writeCapture(path, func(yield func([]byte) bool) {
		for i, flow := range t.order() {
			frame := all[i%len(all)]
			if t.put(frame, t.first+int(flow)); !yield(frame) {
				return
			}
		}
	})
}

// imix is the lengths of frames that RFC 6985 calls simple IMIX, without FCS; a RoCEv2 frame with data has at least 62.
var imix = []int{60, 572, 60, 572, 60, 60, 1514, 572, 60, 60, 572, 60}

// writeCapture makes a capture file of frames.
func writeCapture(path string, frames iter.Seq[[]byte]) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	out := bufio.NewWriterSize(f, 1<<20)
	w := pcapgo.NewWriter(out)
	err = w.WriteFileHeader(65535, layers.LinkTypeEthernet)
	for frame := range frames {
		if err != nil {
			return err
		}
		err = w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, 0), CaptureLength: len(frame), Length: len(frame)}, frame)
	}
	return errors.Join(err, out.Flush())
}

// order returns a random order of the flows.
func (t traffic) order() []uint32 {
	rng := rand.New(rand.NewPCG(uint64(t.flows), uint64(t.first)))
	order := make([]uint32, t.flows)
	for i := range order {
		j := rng.IntN(i + 1)
		order[i] = order[j]
		order[j] = uint32(i)
	}
	return order
}

// frame is an RC RDMA WRITE Middle with ECT(0), for put to fill in.
func (t traffic) frame() []byte {
	if t.cnps {
		r := testkit.RoCE{Src: "11.0.0.0", Dst: "10.0.0.0", DSCP: 48, SrcPort: 0xc000, Opcode: packet.CNP, Flags: packet.BECN, DestQP: 2, Size: 74}
		return r.Frame()
	}
	r := testkit.RoCE{Src: "10.0.0.0", Dst: "11.0.0.0", ECN: packet.ECT0, SrcPort: 0xc000, DestQP: 2}
	if t.v6 {
		r.Src, r.Dst = "fd00:a::", "fd00:b::"
	}
	r.Size = len(r.Frame()) + t.payload
	return r.Frame()
}

// put sets a flow's fields in the frame: addresses, destination QP, checksum and ICRC.
func (t traffic) put(frame []byte, flow int) {
	const l3 = packet.EthernetLen
	l4 := l3 + packet.IPv4Len
	src, dst := frame[l3+12:l3+16], frame[l3+16:l3+20]
	if t.v6 {
		l4 = l3 + packet.IPv6Len
		src, dst = frame[l3+20:l3+24], frame[l3+36:l3+40]
	}
	f, ecn := flowNumber(flow), uint8(packet.ECT0)
	if t.cnps {
		f, ecn = flowID{f.destination, f.source, sourceQP(flow)}, packet.NotECT
	}
	binary.BigEndian.PutUint16(src[2:], f.source)
	binary.BigEndian.PutUint16(dst[2:], f.destination)
	qp := frame[l4+packet.UDPLen+5:]
	qp[0], qp[1], qp[2] = byte(f.qp>>16), byte(f.qp>>8), byte(f.qp)
	testkit.SetECN(frame, l3, ecn) // and the checksum of IPv4
	packet.PutICRC(frame, l3, l4+packet.UDPLen, len(frame)-packet.ICRCLen, true)
}

// flowID identifies a flow: the low halves of its hosts' addresses, and its destination QP.
type flowID struct {
	source, destination uint16
	qp                  uint32
}

func flowNumber(i int) flowID {
	return flowID{uint16(i % hosts), uint16(i / hosts), 2 + uint32(i)*0x9e3779b1>>8%0xfffff0}
}

// sourceQP is a flow's source QP.
func sourceQP(i int) uint32 { return uint32(2 + i%0xfffff0) }

// pairs is the configuration's qp_map for the flows.
func (t traffic) pairs() string {
	text := "qp_map:\n"
	src, dst := "10.0.%d.%d", "11.0.%d.%d"
	if t.v6 {
		src, dst = "fd00:a::%x%02x", "fd00:b::%x%02x"
	}
	for i := t.first; i < t.first+t.flows; i++ {
		f := flowNumber(i)
		text += fmt.Sprintf("  - {source_ip: %q, destination_ip: %q, source_qp: %d, destination_qp: %d}\n",
			fmt.Sprintf(src, f.source>>8, f.source&0xff), fmt.Sprintf(dst, f.destination>>8, f.destination&0xff), sourceQP(i), f.qp)
	}
	return text
}
