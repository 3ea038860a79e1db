package report

import (
	"strings"

	"github.com/cnpgate/cnpgate/control/columns"
)

// The tables of notifications, and of an episode's flows.
var (
	Notifications = columns.New[Notification](strings.Fields(`time port class kind action level source_ip source_qp qp_evidence destination_ip destination_qp why`)...)
	Reactions     = columns.New[EpisodeFlow]("source_ip", "source_qp", "vlan")
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

// Cell implements columns.Celler.
func (f *EpisodeFlow) Cell(name string) (text string, ok bool) {
	return "at fair rate", name == "SLOWED" && f.AtFairRate
}
