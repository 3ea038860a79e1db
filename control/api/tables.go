package api

import (
	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/fleet"
)

// Senders are the columns of senders.
var Senders = columns.New[Sender](
	columns.Col("SOURCE", "Sender", "source_ip", columns.Host),
	columns.Col("VLAN", "VLAN or tunnel", "vlan", columns.Place, 3),
	columns.Col("FLOWS", "Flows", "flows", columns.Count),
	columns.Col("RATE", "Rate", "rate_bps", columns.Rate),
	columns.Col("BYTES", "Bytes", "bytes", columns.Bytes, 1),
	columns.Col("QUEUED", "Queued", "queued_bytes", columns.Bytes, 4),
	columns.Col("MARKED", "Marked packets", "ecn_marked", columns.Count, 2),
	columns.Col("NOTIFICATIONS", "Notifications", "notifications", columns.Count),
	columns.Col("REACTS", "Reacts", "unresponsive", columns.Reacts),
)

// Flows are the columns of flows.
var Flows = columns.New[Flow](
	columns.Col("PORT", "", "port", columns.Text, 6),
	columns.Col("VLAN", "", "vlan", columns.Place, 11),
	columns.Col("SOURCE", "Sender", "source_ip", columns.Host),
	columns.Col("SOURCE_QP", "QP", "source_qp", columns.SourceQP),
	columns.Col("DESTINATION", "Receiver", "destination_ip", columns.Host),
	columns.Col("DESTINATION_QP", "QP", "destination_qp", columns.ID),
	columns.Col("", "VLAN or tunnel", "vlan", columns.Place),
	columns.Col("RATE", "Rate", "rate_bps", columns.Rate),
	columns.Col("AGE", "", "age_ns", columns.Duration, 4),
	columns.Col("PACKETS", "", "packets", columns.Count, 7),
	columns.Col("BYTES", "Bytes", "bytes", columns.Bytes, 5),
	columns.Col("QUEUED", "Queued", "queued_bytes", columns.Bytes, 10),
	columns.Col("MARKED", "Marked", "ecn_marked", columns.Count, 9),
	columns.Col("REACTS", "", "unresponsive", columns.Reacts),
	columns.Col("QP_STATE", "QP", "qp_state", columns.Text, 8),
	columns.Col("ENDED", "Ended", "ended", columns.Text),
	columns.Col("QP_EVIDENCE", "found by", "qp_evidence", columns.Text, 3),
	columns.Col("QP_PACKETS", "", "qp_packets", columns.Count, 2),
	columns.Col("QP_CONTRADICTIONS", "", "qp_contradictions", columns.Count, 1),
	columns.Col("NOTIFICATIONS", "Notifications", "notifications", columns.Counts),
)

// Cell implements columns.Celler.
func (f *Flow) Cell(name string) (text string, ok bool) {
	return "-", name == "QP_PACKETS" && f.SourceQP == nil
}

// Pairs are the columns of pairs of QPs.
var Pairs = columns.New[Pair](
	columns.Col("", "Sender", "source_ip", columns.Host),
	columns.Col("", "QP", "source_qp", columns.SourceQP),
	columns.Col("", "Receiver", "destination_ip", columns.Host),
	columns.Col("", "QP", "destination_qp", columns.ID),
	columns.Col("", "VLAN or tunnel", "vlan", columns.Place),
	columns.Col("", "State", "qp_state", columns.Text),
	columns.Col("", "Evidence", "qp_evidence", columns.Text),
	columns.Col("", "For", "qp_age_ns", columns.Duration),
	columns.Col("", "Contradictions", "qp_contradictions", columns.Count),
	columns.Col("", "Ended", "ended", columns.Text),
)

// ReloadRecords are the columns of reloads.
var ReloadRecords = columns.New[ReloadRecord](
	columns.Col("TIME", "Time", "time", columns.Date),
	columns.Col("OUTCOME", "Outcome", "outcome", columns.Text),
	columns.Col("CONFIGURATION", "Configuration afterwards", "config_hash", columns.Hash),
	columns.Col("CHANGES", "Changed keys", "changes", columns.Long),
	columns.Col("ERROR", "Error", "error", columns.Long),
)

// Members are the columns of the gateways of a fleet.
var Members = columns.New[fleet.MemberView](
	columns.Col("GATEWAY", "Gateway", "name", columns.Text),
	columns.Col("STATE", "State", "member_state", columns.Text),
	columns.Col("VERSION", "Version", "version", columns.Text, 5),
	columns.Col("UPTIME", "Up for", "up_ms", columns.Millis, 4),
	columns.Col("HEARD", "Last heard", "silent_ms", columns.Millis),
	columns.Col("ROUND TRIP", "There and back", "round_us", columns.Micros),
	columns.Col("REMOTE FLOWS", "Flows of others", "remote_flows", columns.Count, 3),
	columns.Col("PAIRS", "Pairs for successors", "pairs", columns.Count, 2),
	columns.Col("WANTS", "Pairs of hosts asked for", "wants", columns.Count, 1),
)

// Connections are the columns of the connections to the fleet's servers.
var Connections = columns.New[fleetlink.FleetConnection](
	columns.Col("SERVER", "Server", "url", columns.Text),
	columns.Col("CONNECTED", "Connected", "connected", columns.Text),
	columns.Col("RECONNECTS", "Reconnects", "reconnects", columns.Count),
	columns.Col("LAST ERROR", "Last error", "error", columns.Long),
)

// Peers are the columns of BGP sessions.
var Peers = columns.New[advertise.Peer](
	columns.Col("PEER", "", "address", columns.Text),
	columns.Col("AS", "", "as", columns.ID, 1),
	columns.Col("STATE", "", "session_state", columns.Text),
	columns.Col("UPTIME", "", "uptime_ns", columns.Duration, 2),
	columns.Col("ANNOUNCED", "", "announced", columns.Count, 3),
	columns.Col("RECEIVED", "", "received", columns.Count),
	columns.Col("LEARNED", "", "learned", columns.Count),
	columns.Col("IGNORED", "", "ignored", columns.Long),
	columns.Col("PROBLEM", "", "problem", columns.Long),
)

// HostHints are the columns of the hints of hosts' agents, StatedHints of the others.
var (
	StatedHints = columns.New[Hint](
		columns.Col("SOURCE", "", "source_ip", columns.Host),
		columns.Col("SOURCE_QP", "", "source_qp", columns.ID),
		columns.Col("DESTINATION", "", "destination_ip", columns.Host),
		columns.Col("DESTINATION_QP", "", "destination_qp", columns.ID),
		columns.Col("TAGS", "", "tags", columns.Text),
		columns.Col("TUNNEL", "", "tunnel", columns.Text),
	)
	HostHints = columns.New[HostHint](
		columns.Col("HOST", "", "host", columns.Text),
		columns.Col("SOURCE", "", "source_ip", columns.Host),
		columns.Col("SOURCE_QP", "", "source_qp", columns.ID),
		columns.Col("DESTINATION", "", "destination_ip", columns.Host),
		columns.Col("DESTINATION_QP", "", "destination_qp", columns.ID),
		columns.Col("TAGS", "", "tags", columns.Text),
		columns.Col("TUNNEL", "", "tunnel", columns.Text),
		columns.Col("REMAINING", "", "remaining_ms", columns.Millis),
	)
)

// Proxies are the columns of proxies.
var Proxies = columns.New[Proxy](
	columns.Col("PREFIX", "", "prefix", columns.Text),
	columns.Col("PROXY", "", "proxy", columns.Text),
	columns.Col("ORIGIN", "", "origin", columns.Text),
)

// PageTables are the columns of the page's tables, by name.
func PageTables() map[string][]columns.Column {
	return map[string][]columns.Column{
		"senders": Senders.Page(), "flows": Flows.Page(), "pairs": Pairs.Page(), "notifications": report.Notifications.Page(), "reactions": report.Reactions.Page(),
		"reloads": ReloadRecords.Page(), "members": Members.Page(), "connections": Connections.Page(),
	}
}
