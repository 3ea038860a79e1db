package report

import "github.com/cnpgate/cnpgate/control/columns"

// Notifications are the columns of notifications.
var Notifications = columns.New[Notification](
	columns.Col("TIME", "Time", "time", columns.Clock),
	columns.Col("PORT", "", "port", columns.Text, 4),
	columns.Col("CLASS", "", "class", columns.Text, 3),
	columns.Col("KIND", "Kind", "kind", columns.Text),
	columns.Col("ACTION", "Asks for", "action", columns.Asks),
	columns.Col("LEVEL", "", "level", columns.Count, 1),
	columns.Col("SOURCE", "Sender", "source_ip", columns.Host),
	columns.Col("SOURCE_QP", "QP", "source_qp", columns.SourceQP),
	columns.Col("EVIDENCE", "", "qp_evidence", columns.Text, 2),
	columns.Col("DESTINATION", "Receiver", "destination_ip", columns.Host),
	columns.Col("DESTINATION_QP", "QP", "destination_qp", columns.ID),
	columns.Col("WHY", "Why", "why", columns.Long),
	columns.Col("", "Outcome", "outcome", columns.Outcome),
	columns.Col("", "VLAN or tunnel", "vlan", columns.Place),
	columns.Col("", "Flow's rate", "flow_rate_bps", columns.Rate),
	columns.Col("", "Queue", "port", columns.Queue),
	columns.Col("", "Depth", "queue_depth_bytes", columns.Bytes),
)

// Cell implements columns.Celler.
func (n *Notification) Cell(name string) (text string, ok bool) {
	switch suppressed := n.Kind == ""; {
	case name == "KIND" && suppressed:
		return n.Outcome, true
	case name == "ACTION" && !suppressed:
		return n.Asks(), true
	}
	return "", false
}

// Reactions are the columns of an episode's flows.
var Reactions = columns.New[EpisodeFlow](
	columns.Col("SOURCE", "Sender", "source_ip", columns.Host),
	columns.Col("SOURCE_QP", "", "source_qp", columns.SourceQP),
	columns.Col("", "VLAN or tunnel", "vlan", columns.Place),
	columns.Col("DESTINATION", "Receiver", "destination_ip", columns.Host),
	columns.Col("DESTINATION_QP", "QP", "destination_qp", columns.ID),
	columns.Col("BYTES", "Bytes", "bytes", columns.Bytes, 3),
	columns.Col("QUEUED", "Most queued", "queued_bytes", columns.Bytes, 1),
	columns.Col("NOTIFIED", "Notifications", "notifications", columns.Count, 2),
	columns.Col("BEFORE", "Rate before", "rate_before_bps", columns.Rate),
	columns.Col("AFTER", "Rate after", "rate_after_bps", columns.Rate),
	columns.Col("SLOWED", "Slowed", "slowed", columns.Slowed),
)

// Cell implements columns.Celler.
func (f *EpisodeFlow) Cell(name string) (text string, ok bool) {
	return "at fair rate", name == "SLOWED" && f.AtFairRate
}
