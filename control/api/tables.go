package api

import (
	"strings"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/fleet"
)

// The tables of the API's lists, each with the members that come first.
var (
	Senders = columns.New[Sender]()
	Flows   = columns.New[Flow](strings.Fields(`port vlan source_ip source_qp destination_ip destination_qp rate_bps age_ns packets bytes queued_bytes ecn_marked unresponsive
		qp_state ended`)...)
	Pairs         = columns.New[Pair]("source_ip", "source_qp", "destination_ip", "destination_qp")
	ReloadRecords = columns.New[ReloadRecord]("time", "outcome", "config_hash")
	PortModes     = columns.New[PortMode]()
	Members       = columns.New[fleet.MemberView]()
	Connections   = columns.New[fleetlink.FleetConnection]()
	Peers         = columns.New[advertise.Peer](strings.Fields(`address as session_state uptime_ns announced received learned ignored`)...)
	StatedHints   = columns.New[Hint]("source_ip", "source_qp")
	HostHints     = columns.New[HostHint]("host", "source_ip", "source_qp")
	Proxies       = columns.New[Proxy]()
)

// Cell implements columns.Celler.
func (f *Flow) Cell(name string) (text string, ok bool) {
	return "-", name == "QP_PACKETS" && f.SourceQP == nil
}

// PageTables are the columns of the page's tables, by name.
func PageTables() map[string][]columns.Column {
	return map[string][]columns.Column{
		"senders": Senders.Page(), "pairs": Pairs.Page(), "reloads": ReloadRecords.Page(), "members": Members.Page(), "connections": Connections.Page(),
		"notifications": report.Notifications.Page(), "reactions": report.Reactions.Page(),
		"flows": Flows.Page(strings.Fields(`source_ip source_qp destination_ip destination_qp vlan rate_bps bytes queued_bytes ecn_marked notifications qp_state qp_evidence`)...),
	}
}
