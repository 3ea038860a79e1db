package main

import (
	"fmt"
	"io"
	"net"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// fields prints a notification's fields, a line each, the layer in front of its first one.
type fields struct {
	w     io.Writer
	layer string
}

func (f *fields) in(layer string) { f.layer = layer }

func (f *fields) field(name, format string, args ...any) {
	fmt.Fprintf(f.w, "    %-10s %-18s %s\n", f.layer, name, fmt.Sprintf(format, args...))
	f.layer = ""
}

// decode prints an accepted notification field by field, from the outside in.
func decode(w io.Writer, n *notification) {
	f, p, s := &fields{w: w}, &n.parsed, &n.said
	f.in("Ethernet")
	f.field("destination", "%s", net.HardwareAddr(n.data[0:6]))
	f.field("source", "%s", net.HardwareAddr(n.data[6:12]))
	f.in(fmt.Sprintf("IPv%d", p.Family))
	f.field("source", "%s (the gateway)", p.Src.Netip())
	f.field("destination", "%s (%s)", p.Dst.Netip(), n.flow.host)
	f.field("DSCP, ECN", "%d, %d", p.DSCP, p.ECN)
	switch s.Kind {
	case cnpdec.FastCNP:
		f.in("Dest Opts")
		f.field("option type", "0x%02x", s.Fast.Type)
		f.field("congested dst", "%s", s.Fast.Option.Dst.Netip())
		bth(f, n)
		f.field("DestQP", "%d (the receiver's: with the address above it names the sender's QP)", s.BTH.DestQP)
	case cnpdec.LongHaulCNP:
		bth(f, n)
		f.field("DestQP", "%d (the sender's)", s.BTH.DestQP)
		longHaul(f, &s.LongHaul)
	case cnpdec.LongHaulCNPICMPv6:
		f.in("ICMPv6")
		f.field("type, code", "%d, %d", n.data[p.L4], n.data[p.L4+1])
		longHaul(f, &s.LongHaul)
	}
}

func bth(f *fields, n *notification) {
	f.in("UDP")
	f.field("ports", "%d -> %d", n.said.UDP.SrcPort, n.said.UDP.DstPort)
	h := &n.said.BTH
	f.in("BTH")
	f.field("opcode", "0x%02x (CNP)", uint8(h.Opcode))
	f.field("flags", "BECN %d, E %d", h.Flags&packet.BECN>>6, h.Flags&packet.ExtensionBit>>5)
	f.field("P_Key", "0x%04x", h.PKey)
}

func longHaul(f *fields, l *cnpdec.LongHaul) {
	metrics := map[uint8]string{0: "unspecified", 1: "queue depth, KB", 2: "queue growth, KB/ms", 3: "ECN marking, percent", 4: "RTT, us"}
	f.in("Long-haul")
	f.field("Congestion Level", "%d of 255", l.Level)
	f.field("Action", "%s, parameter %d", l.Action, l.Parameter)
	f.field("Source QP", "%d", l.SourceQP)
	f.field("Metric", "%d (%s)", l.MetricValue, metrics[l.MetricType])
}
