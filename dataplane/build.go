package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// build writes a notification to out and returns its length in bytes, 0 if it can't be built.
func (w *Worker) build(n *note, out []byte) int { return builders[n.format](w, n, out) }

// builders has the builder of each kind of notification.
var builders = [packet.SentNotifications]func(w *Worker, n *note, out []byte) int{
	packet.FastCNP: func(w *Worker, n *note, out []byte) int {
		var trace packet.IOAMTrace
		if n.packet != nil {
			trace = packet.FindIOAMTrace(n.frame, n.packet)
		}
		size, carried := cnpgen.FastCNP(out, n.target, &w.policy.Build, trace)
		if size != 0 && carried == cnpgen.TraceTooLong {
			w.counters.add(int(n.in), FastCNPTraceTooLong, 1)
		}
		return size
	},
	packet.LongHaulCNP: func(w *Worker, n *note, out []byte) int {
		return cnpgen.LongHaulCNP(out, n.target, &w.policy.Build, w.longHaul(n))
	},
	packet.LongHaulCNPICMPv6: func(w *Worker, n *note, out []byte) int {
		return cnpgen.LongHaulCNPICMPv6(out, n.target, &w.policy.Build, w.longHaul(n))
	},
	packet.PPFC: func(w *Worker, n *note, out []byte) int {
		pause := cnpgen.PPFC{Port: uint16(n.out), Resume: n.decision.Action == congestion.Resume}
		if !pause.Resume {
			pause.Duration = w.pause(n)
		}
		return cnpgen.PPFCNotification(out, n.target, &w.policy.Build, &pause)
	},
	packet.StandardCNP: func(w *Worker, n *note, out []byte) int {
		return cnpgen.StandardCNP(out, n.target, &w.policy.Build, n.sourceQP)
	},
	packet.ProxyNotification: func(w *Worker, n *note, out []byte) int {
		if n.frame == nil {
			return 0 // the proxy needs the packet, and there is no Resume for it
		}
		return cnpgen.ProxyNotification(out, n.target, &w.policy.Build, n.frame, n.packet, n.to, congestion.ProxyLevel(n.decision.Level))
	},
}

// longHaul returns the fields of a Long-haul CNP. They are valid until the next call.
func (w *Worker) longHaul(n *note) *cnpgen.LongHaul {
	l, d := &w.fields, &n.decision
	l.Level, l.Action, l.Parameter, l.SourceQP = d.Level, cnpgen.Action(d.Action), d.Parameter, n.sourceQP
	l.MetricType, l.MetricValue = d.MetricType, d.MetricValue
	if extension := w.policy.Extension; extension != l.Extension || extension != nil {
		l.Extension = w.timed(extension)
	}
	return l
}

// timed returns the Extension Objects of a Long-haul CNP that is sent now.
func (w *Worker) timed(extension *cnpgen.Extension) *cnpgen.Extension {
	if extension == nil || !w.policy.Timestamp {
		return extension
	}
	w.extension = *extension
	w.extension.Timestamp = packet.NTPTime(w.now + w.plane.wallClock.Load())
	return &w.extension
}

// pause is the pause in microseconds for a sender that can only be paused: the requested duration, or for Rate Reduce by some percent that
// part of RTT_est.
func (w *Worker) pause(n *note) uint16 {
	d := &n.decision
	if d.Action == congestion.Pause {
		return d.Parameter
	}
	rtt := max(w.policy.Ports[n.out].RTT, 0) / 1000
	return uint16(min(max(rtt*int64(d.Parameter)/100, 1), 0xffff))
}
