package notify

import (
	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// build writes a notification to out and returns its length in bytes, 0 if it can't be built.
func (n *Notifier) build(m *Note, out []byte) int {
	r, d, policy := &n.request, &m.Decision, n.Policy
	if m.Format != packet.FastCNP { // it carries none of them
		r.Level, r.Action, r.Parameter, r.SourceQP = d.Level, d.Action, d.Parameter, m.sourceQP
		r.MetricType, r.MetricValue = d.MetricType, d.MetricValue
	}
	if m.packet != nil || r.Packet != nil {
		r.Frame, r.Packet, r.To = m.frame, m.packet, m.To
	}
	if extension := policy.Extension; extension != r.Extension || extension != nil {
		r.Extension = n.timed(extension)
	}
	size := cnpgen.Build(out, m.Format, &policy.Build, r)
	if size != 0 && r.Trace == cnpgen.TraceTooLong {
		n.Counters.Add(int(m.In), counters.FastCNPTraceTooLong, 1)
	}
	return size
}

// timed returns the Extension Objects of a Long-haul CNP that is sent now.
func (n *Notifier) timed(extension *cnpgen.Extension) *cnpgen.Extension {
	if extension == nil || !n.Policy.Timestamp {
		return extension
	}
	n.extension = *extension
	n.extension.Timestamp = packet.NTPTime(n.UnixTime())
	return &n.extension
}
