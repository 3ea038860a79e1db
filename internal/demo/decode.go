package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// decode prints a notification field by field, from the outside in.
func decode(w io.Writer, n *notification) {
	b, p := n.data, &n.parsed
	field := func(layer, name, format string, args ...any) {
		fmt.Fprintf(w, "    %-10s %-18s %s\n", layer, name, fmt.Sprintf(format, args...))
	}
	field("Ethernet", "destination", "%s", net.HardwareAddr(b[0:6]))
	field("", "source", "%s", net.HardwareAddr(b[6:12]))
	l3 := b[p.L3:]
	if p.Family == 4 {
		field("IPv4", "source", "%s (the gateway)", p.Src.Netip())
		field("", "destination", "%s (%s)", p.Dst.Netip(), n.to())
		field("", "DSCP, ECN", "%d, %d", p.DSCP, p.ECN)
		field("", "TTL, ID, flags", "%d, %d, %s", l3[8], binary.BigEndian.Uint16(l3[4:]), fragmentFlags(l3[6]))
	} else {
		field("IPv6", "source", "%s (the gateway)", p.Src.Netip())
		field("", "destination", "%s (%s)", p.Dst.Netip(), n.to())
		field("", "DSCP, ECN", "%d, %d", p.DSCP, p.ECN)
		field("", "hop limit", "%d", l3[7])
	}
	if n.kind == "fast-cnp" {
		o := b[p.DstOpts:]
		field("Dest Opts", "option type", "0x%02x (Fast CNP option 1)", o[2])
		field("", "Opt Data Len", "%d", o[3])
		field("", "congested dst", "%s", packet.AddrFrom16(o[4:]).Netip())
	}
	if p.Proto == packet.ProtoICMPv6 {
		m := b[p.L4:]
		field("ICMPv6", "type, code", "%d (Long-haul CNP), %d", m[0], m[1])
		field("", "checksum", "0x%04x, %s", binary.BigEndian.Uint16(m[2:]), rightOrWrong(n.sound()))
		longHaulFields(field, m[packet.ICMPv6Len:])
		return
	}
	field("UDP", "ports", "%d -> %d", p.SrcPort, p.DstPort)
	h := packet.DecodeBTH(b[p.BTH:])
	field("BTH", "opcode", "0x%02x (CNP)", uint8(h.Opcode))
	field("", "flags", "BECN %d, E %d", h.Flags&packet.BECN>>6, h.Flags&packet.ExtensionBit>>5)
	field("", "P_Key", "0x%04x", h.PKey)
	if n.kind == "fast-cnp" {
		field("", "DestQP", "%d (the receiver's: with the address above it names the sender's QP)", h.DestQP)
	} else {
		field("", "DestQP", "%d (the sender's)", h.DestQP)
		longHaulFields(field, b[p.Ext:])
	}
	field("ICRC", "", "0x%08x, %s", binary.LittleEndian.Uint32(b[p.ICRC:]), rightOrWrong(packet.VerifyICRC(b, p)))
}

// longHaulFields prints the twelve octets of draft-tian 6.1.
func longHaulFields(field func(string, string, string, ...any), b []byte) {
	actions := [4]string{"Notify", "Pause", "Rate Reduce", "Resume"}
	metrics := map[byte]string{0: "unspecified", 1: "queue depth, KB", 2: "queue growth, KB/ms", 3: "ECN marking, percent", 4: "RTT, us"}
	field("Long-haul", "Congestion Level", "%d of 255", b[0])
	field("", "Action", "%s", actions[b[1]>>6])
	field("", "Parameter", "%d", binary.BigEndian.Uint16(b[2:]))
	field("", "Source QP", "%d", longHaulQP(b))
	field("", "Metric", "%d (%s)", binary.BigEndian.Uint32(b[8:])&0xffffff, metrics[b[8]])
}

func (n *notification) to() string {
	if n.flow == nil {
		return "nobody that sent"
	}
	return n.flow.host
}

func fragmentFlags(b byte) string {
	if b&0x40 != 0 {
		return "DF"
	}
	return "-"
}

func rightOrWrong(ok bool) string {
	if ok {
		return "right"
	}
	return "WRONG"
}
