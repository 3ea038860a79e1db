package dataplane

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// build writes a notification to out and returns its length in bytes, 0 if it can't be built.
func (w *Worker) build(n *note, out []byte) int {
	r, d := &w.request, &n.decision
	r.Level, r.Action, r.Parameter, r.SourceQP = d.Level, d.Action, d.Parameter, n.sourceQP
	r.MetricType, r.MetricValue = d.MetricType, d.MetricValue
	r.Target = n.target
	if n.packet != nil || r.Packet != nil {
		r.Frame, r.Packet, r.To = n.frame, n.packet, n.to
	}
	if extension := w.policy.Extension; extension != r.Extension || extension != nil {
		r.Extension = w.timed(extension)
	}
	size := cnpgen.Build(out, n.format, &w.policy.Build, r)
	if size != 0 && r.Trace == cnpgen.TraceTooLong {
		w.counters.add(int(n.in), FastCNPTraceTooLong, 1)
	}
	return size
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
