package main

import (
	endian "encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

const offPort = 14791

// toPort moves a packet to another UDP port, as a NIC sends it there: the ICRC covers the port.
func toPort(frame []byte) []byte {
	const l3, bth = packet.EthernetLen, packet.EthernetLen + packet.IPv4Len + packet.UDPLen
	frame = slices.Clone(frame)
	endian.BigEndian.PutUint16(frame[bth-6:], offPort)
	end := len(frame) - packet.ICRCLen
	endian.LittleEndian.PutUint32(frame[end:], packet.ICRC(frame, l3, bth, end, true))
	return frame
}

// inUDP puts a frame behind an overlay's header in UDP to a port.
func inUDP(port uint16, header ...byte) func([]byte) []byte {
	return func(frame []byte) []byte {
		payload := slices.Concat(header, frame)
		b := make([]byte, packet.EthernetLen+packet.IPv4Len, packet.EthernetLen+packet.IPv4Len+packet.UDPLen+len(payload))
		endian.BigEndian.PutUint16(b[packet.EthernetLen-2:], packet.EtherTypeIPv4)
		packet.PutIPv4(b[packet.EthernetLen:], uint16(packet.IPv4Len+packet.UDPLen+len(payload)), 0, 64, packet.ProtoUDP, 0xc0000201, 0xc0000202)
		b = endian.BigEndian.AppendUint16(endian.BigEndian.AppendUint16(b, 50000), port)
		b = endian.BigEndian.AppendUint16(b, uint16(packet.UDPLen+len(payload)))
		return append(append(b, 0, 0), payload...)
	}
}

// corruptedCapture is a capture of 64 requests and their ACKs. Each eighth request comes twice: first with a wrong bit, which the receiver drops.
func corruptedCapture(t *testing.T, as func([]byte) []byte) string {
	t.Helper()
	path, add, end := pcap.Create(t, pcap.Whole)
	now := int64(1_700_000_000e9)
	write := func(frame []byte, damaged bool) {
		frame = slices.Clone(as(frame))
		if damaged {
			frame[len(frame)-packet.ICRCLen-1] ^= 1
		}
		now += 50_000
		add(now, frame, len(frame))
	}
	for psn := range uint32(64) {
		request := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", SrcPort: 50001, Opcode: packet.RCSendOnly, Flags: 0, DestQP: 200, PSN: psn, Size: 1100}.Frame()
		if psn%8 == 0 {
			write(request, true)
		}
		write(request, false)
		write(testkit.RoCE{Src: "10.9.0.9", Dst: "10.1.0.1", SrcPort: 50002, Opcode: packet.RCAcknowledge, DestQP: 100, PSN: psn}.Frame(), false)
	}
	end()
	return path
}

// TestHealthOfOtherPorts: --roce-port finds RoCEv2 on another port, and the ICRC is verified there and behind every overlay, over the bytes as they were
// captured.
func TestHealthOfOtherPorts(t *testing.T) {
	same := func(frame []byte) []byte { return frame }
	const frames, damaged = 64 + 8 + 64, 8
	onOther := []string{"--roce-port", "14791"}
	vni := []byte{0x08, 0, 0, 0, 0, 0, 77, 0}
	for _, c := range []struct {
		name  string
		as    func([]byte) []byte
		flags []string
		reads bool
	}{
		{"port 4791", same, nil, true},
		{"port 4791, and another one is given", same, onOther, true},
		{"another port", toPort, onOther, true},
		{"another port that isn't given", toPort, nil, false},
		{"another port in VXLAN", func(b []byte) []byte { return inUDP(4789, vni...)(toPort(b)) }, onOther, true},
		{"VXLAN", inUDP(4789, vni...), nil, true},
		{"VXLAN on 8472", inUDP(8472, vni...), nil, true},
		{"VXLAN-GPE", inUDP(4790, 0x0c, 0, 0, 3, 0, 0, 77, 0), nil, true},
		{"Geneve with an option", inUDP(6081, 1, 0, 0x65, 0x58, 0, 0, 77, 0, 0, 0, 0, 0), nil, true},
		{"another port in Geneve", func(b []byte) []byte { return inUDP(6081, 0, 0, 0x65, 0x58, 0, 0, 77, 0)(toPort(b)) }, onOther, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := within(t, t.TempDir(), slices.Concat([]string{"replay", "--health", "-o", "json"}, c.flags, []string{corruptedCapture(t, c.as)})...)
			var r health.Report
			if err := json.Unmarshal([]byte(ran.stdout), &r); err != nil || ran.status != 0 {
				t.Fatalf("%v; status %d: %s", err, ran.status, ran.stderr)
			}
			if !c.reads {
				if r.Summary.Packets != 0 || r.Conclusion == "Nothing is wrong." {
					t.Errorf("%d packets, %q", r.Summary.Packets, r.Conclusion)
				}
				return
			}
			if r.Frames.Examined != frames || r.Summary.Packets != frames-damaged {
				t.Errorf("%d frames examined, %d packets; want %d and %d", r.Frames.Examined, r.Summary.Packets, frames, frames-damaged)
			}
			at := slices.IndexFunc(r.Verdicts, func(v health.Verdict) bool { return v.Name == health.WrongICRC })
			if at < 0 || r.Verdicts[at].Weight != damaged {
				t.Errorf("verdicts %+v, want %s of %d packets", r.Verdicts, health.WrongICRC, damaged)
			}
		})
	}
}
