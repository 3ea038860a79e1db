package decode

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Describe lists every field of an accepted notification, from the outermost header inwards. frame, p, n and code are
// the arguments and results of cnpdec.Decode.
func Describe(frame []byte, p *packet.Parsed, n *cnpdec.Notification, code *packet.CodePoints) []Layer {
	all := ethernet(frame, p)
	switch n.Kind {
	case packet.LinkPause:
		return append(all, pause(n.Pause))
	case packet.LinkPFC:
		return append(all, pfc(&n.PFC))
	}
	all = append(all, internet(frame, p))
	upper := frame[p.L4:p.IPEnd]
	switch n.Kind {
	case packet.LongHaulCNPICMPv6:
		all = append(all, icmpv6(n.Src, n.Dst, upper))
		return append(all, longHaul(&n.LongHaul, code.ExtensionClass)...)
	case packet.ProxyNotification:
		return append(all, udp(n.Src, n.Dst, upper), proxied(&n.Proxy), invoking(&n.Proxy))
	case packet.FastCNP:
		all = append(all, fastCNP(n)...)
	}
	all = append(all, udp(n.Src, n.Dst, upper), bth(n))
	switch n.Kind {
	case packet.LongHaulCNP:
		all = append(all, longHaul(&n.LongHaul, code.ExtensionClass)...)
	case packet.PPFC:
		all = append(all, ppfc(&n.PPFC))
	case packet.StandardCNP, packet.FastCNP:
		all = append(all, body(n.Body))
	}
	return append(all, icrc(frame, p, true, n.ICRC))
}

func bth(n *cnpdec.Notification) Layer {
	h := &n.BTH
	l := Layer{Key: "bth", Name: "BTH"}
	l.say("opcode", "opcode", uint8(h.Opcode), "0x%02x, CNP", uint8(h.Opcode))
	l.as("becn", "BECN", h.Flags>>6&1)
	l.as("fecn", "", h.Flags>>7)
	l.say("extension_bit", "E or P bit", h.Flags>>5&1, "%d", h.Flags>>5&1)
	l.as("mig_req", "MigReq", h.MigReq)
	l.as("tver", "", h.TVer)
	note := ""
	if h.PKey != packet.DefaultPKey { // draft-tian 6.2.3: then it is that of the flow
		note = fmt.Sprintf(" (not the default 0x%04x: the flow's partition)", packet.DefaultPKey)
	}
	l.say("p_key", "P_Key", h.PKey, "0x%04x%s", h.PKey, note)
	whose := "the receiver's: with the congested destination it names the sender's QP"
	if n.Asks.SendersQP {
		whose = "the sender's"
	}
	l.say("dest_qp", "DestQP", h.DestQP, "%d (%s)", h.DestQP, whose)
	l.as("psn", "PSN", h.PSN)
	l.reserved("flags_reserved", uint64(h.Flags&0x1f))
	l.reserved("psn_reserved", uint64(h.Reserved))
	return l
}

// body is the part after the BTH of a CNP without fields.
func body(b []byte) Layer {
	l := Layer{Key: "cnp", Name: "CNP"}
	text := "zeros"
	if strings.Trim(string(b), "\x00") != "" {
		text = hex.EncodeToString(b) + " (ignored)"
	}
	l.say("reserved", "reserved", hex.EncodeToString(b), "%d octets, %s", len(b), text)
	return l
}

func fastCNP(n *cnpdec.Notification) []Layer {
	h := &n.Fast
	o := &h.Option
	l := Layer{Key: "fast_cnp", Name: "Fast CNP"}
	l.say("option_type", "option type", h.Type, "0x%02x", h.Type)
	if o.Trace.Data == nil {
		l.say("option", "option", 1, "1, without a trace")
	} else {
		l.say("option", "option", 2, "2, with an IOAM trace")
		l.reserved("reserved", uint64(o.Reserved))
	}
	l.say("congested_destination", "congested dst", o.Dst.Netip().String(), "%s (the data packet's destination)", o.Dst.Netip())
	sender := "a device on the way"
	if n.FromReceiver() {
		sender = "the data's receiver"
	}
	l.say("from_receiver", "sent by", n.FromReceiver(), "%s", sender)
	if o.Trace.Data == nil {
		return []Layer{l}
	}
	return []Layer{l, ioam(&o.Trace)}
}

// ioam is the trace of option 2 (RFC 9197 4.4.1). cnpdec has checked that its fixed part is complete.
func ioam(t *packet.IOAMTrace) Layer {
	l := Layer{Key: "ioam", Name: "IOAM"}
	name := "pre-allocated trace"
	if t.Type == packet.IOAMIncrementalTrace {
		name = "incremental trace"
	}
	h := packet.DecodeIOAMTraceHeader(t.Data)
	data := t.Data[packet.IOAMTraceHeaderLen:]
	l.say("option_type", "IOAM option type", t.Type, "%d, %s", t.Type, name)
	l.as("namespace_id", "namespace ID", h.NamespaceID)
	l.say("node_len", "node length", h.NodeLen, "%d words", h.NodeLen)
	l.say("flags", "flags", h.Flags, "0x%x", h.Flags)
	l.say("remaining_len", "remaining length", h.RemainingLen, "%d words", h.RemainingLen)
	l.say("trace_type", "trace type", h.TraceType, "0x%06x", h.TraceType)
	l.reserved("reserved", uint64(h.Reserved))
	l.say("node_data", "node data", hex.EncodeToString(data), "%d octets, %x", len(data), data)
	return l
}

func ppfc(n *packet.PPFCFields) Layer {
	l := Layer{Key: "ppfc", Name: "PPFC"}
	name := "pause"
	if n.PT == packet.PTResume {
		name = "resume"
	}
	l.as("congested_destination", "congested dst", n.Dst.Netip().String())
	l.say("pt", "PT", n.PT, "%d, %s", n.PT, name)
	l.as("port", "congestion port", n.Port)
	l.say("duration_us", "pause duration", n.Duration, "%d us", n.Duration)
	l.reserved("flags", uint64(n.Flags))
	l.reserved("reserved", uint64(n.Reserved))
	return l
}

func proxied(x *cnpdec.Proxy) Layer {
	l := Layer{Key: "proxy", Name: "Proxy"}
	l.say("level", "Congestion Level", x.Level, "%d of 7", x.Level)
	l.as("ip_version", "flow's IP version", x.Version)
	l.as("source", "flow's source", x.Src.Netip().String())
	l.as("destination", "flow's dest.", x.Dst.Netip().String())
	l.as("protocol", "flow's protocol", x.Proto)
	l.say("source_port", "flow's ports", x.SrcPort, "%d -> %d", x.SrcPort, x.DstPort)
	l.as("destination_port", "", x.DstPort)
	r := uint64(0)
	if x.R {
		r = 1
	}
	l.reserved("r", r)
	l.reserved("reserved", uint64(x.Reserved))
	return l
}

// invoking is the included part of the data packet that met congestion.
func invoking(x *cnpdec.Proxy) Layer {
	in := &x.Inner
	l := Layer{Key: "invoking_packet", Name: "Invoking"}
	rest := ", whole"
	if missing := int(in.IPEnd) - len(x.Invoking); missing > 0 {
		rest = fmt.Sprintf(" of %d", in.IPEnd)
	}
	l.say("length", "packet", len(x.Invoking), "%d octets%s", len(x.Invoking), rest)
	l.as("original_length", "", in.IPEnd)
	if in.Kind == packet.RoCEv2 {
		l.say("opcode", "opcode", uint8(in.Opcode), "0x%02x, %s", uint8(in.Opcode), in.Opcode)
		l.say("dest_qp", "DestQP", in.DestQP, "%d (the receiver's)", in.DestQP)
		l.as("psn", "PSN", in.PSN)
	}
	return l
}

// quanta is a pause time of PAUSE and PFC; its duration depends on the link's rate.
func quanta(n uint16) string {
	if n == 0 {
		return "0 (resume)"
	}
	return fmt.Sprintf("%d quanta of 512 bit times", n)
}

func pause(f packet.Pause) Layer {
	l := Layer{Key: "pause", Name: "PAUSE"}
	l.say("time_quanta", "time", f.Time, "%s", quanta(f.Time))
	return l
}

func pfc(f *packet.PFC) Layer {
	l := Layer{Key: "pfc", Name: "PFC"}
	l.say("enabled", "enabled", f.Enabled, "0x%02x", f.Enabled)
	l.reserved("reserved", uint64(f.Reserved))
	for i, t := range f.Time {
		key, name := fmt.Sprintf("time%d_quanta", i), fmt.Sprintf("priority %d", i)
		if f.Enabled>>i&1 == 0 {
			name = ""
		}
		l.say(key, name, t, "%s", quanta(t))
	}
	return l
}
