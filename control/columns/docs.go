package columns

import (
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// Docs describes the members of answers that have no description of their own. A name means the same wherever it is used.
var Docs = map[string]string{
	"bytes":             "Bytes of the flow's frames, without FCS.",
	"class":             "Traffic class of the port, by name.",
	"destination_ip":    "IP address of the receiver.",
	"destination_qp":    "QP of the receiver.",
	"ecn_marked":        "Packets that were marked CE here.",
	"ended":             "Why the flow's record has ended: `dreq`, `reuse`, `aged`, `evicted`.",
	"flows":             "The flows; of an episode the eight with most bytes.",
	"id":                "Number of the episode.",
	"k_max_bytes":       "K_max of a class; where the control law applies, twice `q_ref_bytes`.",
	"k_min_bytes":       "K_min of a class; where the control law applies, `q_ref_bytes`.",
	"notifications":     "Notifications by kind, or their list.",
	"pairs":             "The pairs.",
	"port":              "Name of the port: of a flow the ingress port, of a notification the congested one.",
	"unresponsive":      "The flow's sender doesn't react to notifications.",
	"qp_state":          "State of the source QP: unknown, candidate, confirmed.",
	"queue_depth_bytes": "Depth of the fullest class; of a notification, of its queue at that time.",
	"source_ip":         "IP address of the sender.",
	"source_qp":         "QP of the sender; null unless it is confirmed.",
	"tunnel":            "Kind of tunnel that a flow is in: " + strings.Join(packet.TunnelNames(), ", ") + ".",
	"tunnel_id":         "Identifier of the tunnel: VXLAN Network Identifier, GRE key, bottom MPLS label; left out if it is 0 or the kind has none.",
	"vlan":              "VID of each VLAN tag, the outer one first; of a flow in a tunnel, that of the frame inside or else of the whole frame.",
}
