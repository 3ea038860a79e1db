package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// build writes a notification to out and returns its length in bytes, 0 if it can't be built.
func (n *notifier) build(m *note, out []byte) int { return builders[m.format](n, m, out) }

// builders has the builder of each kind of notification.
var builders = [packet.SentNotifications]func(n *notifier, m *note, out []byte) int{
	packet.FastCNP: func(n *notifier, m *note, out []byte) int {
		var trace packet.IOAMTrace
		if m.packet != nil {
			trace = packet.FindIOAMTrace(m.frame, m.packet)
		}
		size, carried := cnpgen.FastCNP(out, m.target, &n.policy.Build, trace)
		if size != 0 && carried == cnpgen.TraceTooLong {
			n.counters.add(int(m.in), FastCNPTraceTooLong, 1)
		}
		return size
	},
	packet.LongHaulCNP: func(n *notifier, m *note, out []byte) int {
		return cnpgen.LongHaulCNP(out, m.target, &n.policy.Build, n.longHaul(m))
	},
	packet.LongHaulCNPICMPv6: func(n *notifier, m *note, out []byte) int {
		return cnpgen.LongHaulCNPICMPv6(out, m.target, &n.policy.Build, n.longHaul(m))
	},
	packet.PPFC: func(n *notifier, m *note, out []byte) int {
		pause := cnpgen.PPFC{Port: uint16(m.out), Resume: m.decision.Action == congestion.Resume}
		if !pause.Resume {
			pause.Duration = n.pause(m)
		}
		return cnpgen.PPFCNotification(out, m.target, &n.policy.Build, &pause)
	},
	packet.StandardCNP: func(n *notifier, m *note, out []byte) int {
		return cnpgen.StandardCNP(out, m.target, &n.policy.Build, m.sourceQP)
	},
	packet.ProxyNotification: func(n *notifier, m *note, out []byte) int {
		if m.frame == nil {
			return 0 // the proxy needs the packet, and there is no Resume for it
		}
		return cnpgen.ProxyNotification(out, m.target, &n.policy.Build, m.frame, m.packet, m.to, congestion.ProxyLevel(m.decision.Level))
	},
}

// longHaul returns the fields of a Long-haul CNP. They are valid until the next call.
func (n *notifier) longHaul(m *note) *cnpgen.LongHaul {
	l, d := &n.fields, &m.decision
	l.Level, l.Action, l.Parameter, l.SourceQP = d.Level, cnpgen.Action(d.Action), d.Parameter, m.sourceQP
	l.MetricType, l.MetricValue = d.MetricType, d.MetricValue
	if extension := n.policy.Extension; extension != l.Extension || extension != nil {
		l.Extension = n.timed(extension)
	}
	return l
}

// timed returns the Extension Objects of a Long-haul CNP that is sent now.
func (n *notifier) timed(extension *cnpgen.Extension) *cnpgen.Extension {
	if extension == nil || !n.policy.Timestamp {
		return extension
	}
	n.extension = *extension
	n.extension.Timestamp = packet.NTPTime(n.now + n.plane.wallClock.Load())
	return &n.extension
}

// pause is the pause in microseconds for a sender that can only be paused: the requested duration, or for Rate Reduce by some percent that
// part of RTT_est.
func (n *notifier) pause(m *note) uint16 {
	d := &m.decision
	if d.Action == congestion.Pause {
		return d.Parameter
	}
	rtt := max(n.policy.Ports[m.out].RTT, 0) / 1000
	return uint16(min(max(rtt*int64(d.Parameter)/100, 1), 0xffff))
}
