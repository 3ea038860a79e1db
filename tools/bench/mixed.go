package main

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"github.com/cnpgate/cnpgate/dataplane/frames"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// mix is traffic like that of a gateway in use: the first RoCEv2 frames of each capture of testdata/captures, in the captures' order, from many pairs of
// hosts at the same time, with CNPs. So sizes, opcodes and IP versions differ from frame to frame.
type mix struct {
	frames [2][][]byte // that the fabric port and the WAN port receive
	flows  int
}

const (
	mixCopies = 6   // pairs of hosts for each capture: with more, the frames would not fit into a cache
	mixFirst  = 320 // frames of each capture: with few, most PSNs would come again as if they had been lost
	mixRun    = 8   // frames that come from one pair in a row, at most
	mixTagged = 4   // one of so many pairs is in a VLAN
	mixCNPs   = 14  // one of so many frames is followed by its receiver's CNP
)

// newMix makes the frames, the same ones every time.
func newMix() (m mix, err error) {
	c := &complaints{}
	var pairs [][]mixed
	for _, path := range pcap.Real(c) {
		octets := pcap.Octets(pcap.Read(c, path))
		if c.err != nil {
			return m, c.err
		}
		for n := range mixCopies {
			pairs = append(pairs, pairOf(octets, byte(1+len(pairs)), n))
		}
	}
	rng, flows := rand.New(rand.NewPCG(1, 1)), map[flowtable.Key]bool{}
	for len(pairs) > 0 {
		i := rng.IntN(len(pairs))
		n := min(1+rng.IntN(mixRun), len(pairs[i]))
		for _, f := range pairs[i][:n] {
			m.frames[f.port] = append(m.frames[f.port], f.octets)
			if f.key != (flowtable.Key{}) {
				flows[f.key] = true
			}
		}
		if pairs[i] = pairs[i][n:]; len(pairs[i]) == 0 {
			pairs[i] = pairs[len(pairs)-1]
			pairs = pairs[:len(pairs)-1]
		}
	}
	m.flows = len(flows)
	return m, nil
}

// mixed is a frame of a mix.
type mixed struct {
	port   int
	octets []byte
	key    flowtable.Key // zero for a CNP
}

// pairOf has a capture's frames as those of another pair of hosts. n is the number of the pair, of those with this capture.
func pairOf(capture [][]byte, id byte, n int) (pair []mixed) {
	peers := map[uint16][2]uint32{} // the destination QPs of a connection's two directions, by its UDP source port
	for _, octets := range capture {
		var p packet.Parsed
		if packet.Parse(octets, uint32(len(octets)), &p); p.Kind != packet.RoCEv2 {
			continue // tools exchange QP numbers over TCP
		}
		octets = ofPair(octets, id, n, &p)
		f := mixed{port: (n ^ int(p.Dst.Lo)) & 1, octets: octets} // in every other pair, the server, whose address is odd, is behind the other port
		packet.Parse(octets, uint32(len(octets)), &p)
		frames.SetKey(&f.key, f.port, &p)
		pair = append(pair, f)
		qps := peers[p.SrcPort]
		qps[f.port] = p.DestQP
		peers[p.SrcPort] = qps
		if sender := qps[f.port^1]; sender != 0 && p.DestQP != packet.GSIQP && len(pair)%mixCNPs == 0 {
			pair = append(pair, mixed{port: f.port ^ 1, octets: cnpFor(&p, sender)})
		}
		if len(pair) >= mixFirst {
			break
		}
	}
	return pair
}

// ofPair is a frame of a capture with the addresses of a pair, also in CM messages, and in a VLAN if the pair is in one.
func ofPair(octets []byte, id byte, n int, p *packet.Parsed) []byte {
	for _, host := range []string{"198.18.0.1", "198.18.0.2", "fd00:18::1", "fd00:18::2"} {
		was := netip.MustParseAddr(host).AsSlice()
		is := bytes.Clone(was)
		is[len(is)-2] = id
		octets = bytes.ReplaceAll(octets, was, is)
	}
	l3 := int(p.L3)
	if n%mixTagged == 0 {
		tag := binary.BigEndian.AppendUint32(nil, uint32(packet.EtherTypeCTag)<<16|100+uint32(n))
		octets = bytes.Join([][]byte{octets[:l3-2], tag, octets[l3-2:]}, nil)
	}
	l3 += len(octets) - int(p.Len)
	testkit.SetECN(octets, l3, p.ECN) // and the checksum of IPv4
	packet.PutICRC(octets, l3, int(p.BTH)+len(octets)-int(p.Len), len(octets)-packet.ICRCLen, true)
	return octets
}

// cnpFor is the CNP that the receiver of a packet sends to the sender's QP.
func cnpFor(p *packet.Parsed, sender uint32) []byte {
	cnp := testkit.RoCE{
		Src: p.Dst.Netip().String(), Dst: p.Src.Netip().String(), DSCP: 48, SrcPort: p.SrcPort, Opcode: packet.CNP, Flags: packet.BECN, DestQP: sender, Size: 74,
	}
	if p.Tags > 0 {
		cnp.Tags = []uint32{uint32(packet.EtherTypeCTag)<<16 | uint32(p.OuterTag)&0xfff}
	}
	return cnp.Frame()
}
