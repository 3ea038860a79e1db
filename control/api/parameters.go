package api

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/pairing"
)

// parameter is a key of the query.
type parameter struct {
	name        string
	description string
	required    bool
	form
}

// form is what the text of a parameter may be.
type form struct {
	schema   *huma.Schema
	read     func(text string) (value any, ok bool)
	expected string // in errors; "": any text is read
}

// anyText is any text, which the operation reads itself.
func anyText(schema *huma.Schema) form {
	return form{schema, func(text string) (any, bool) { return text, true }, ""}
}

// example is the schema of a text.
func example(texts ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Examples: texts} }

// oneOf is one of some words.
func oneOf(all ...string) form {
	s := &huma.Schema{Type: huma.TypeString}
	for _, word := range all {
		s.Enum = append(s.Enum, word)
	}
	return form{s, func(text string) (any, bool) { return text, slices.Contains(all, text) }, strings.Join(all, ", ")}
}

// upTo is a number from 1 to most, a uint64. expected has a verb for most.
func upTo(most uint64, expected string) form {
	s := &huma.Schema{Type: huma.TypeInteger, Minimum: bound(1), Maximum: bound(float64(most))}
	return form{s, func(text string) (any, bool) {
		n, err := strconv.ParseUint(text, 10, 64)
		return n, err == nil && n >= 1 && n <= most
	}, fmt.Sprintf(expected, most)}
}

// within is a time.Duration. such is what else an error says was expected.
func within(least, most time.Duration, shown, such string) form {
	return form{example(shown), func(text string) (any, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= least && d <= most
	}, fmt.Sprintf("a time from %v to %v, %s", least, most, such)}
}

var (
	// truthForm is of a bool.
	truthForm = form{oneOf(strings.Fields("true false 1 0 t f T F TRUE FALSE True False")...).schema, func(text string) (any, bool) {
		yes, err := strconv.ParseBool(text)
		return yes, err == nil
	}, "true or false"}
	// qpForm is of the number of a QP, a *uint32.
	qpForm = form{&huma.Schema{Type: huma.TypeString, Pattern: number, Examples: []any{"17", "0x11"}}, func(text string) (any, bool) {
		n, err := strconv.ParseUint(text, 0, 24)
		qp := uint32(n)
		return &qp, err == nil
	}, "a QP, 0 to 16777215"}
	// hostForm is of a netip.Addr.
	hostForm = form{example("10.1.0.1"), func(text string) (any, bool) {
		a, err := netip.ParseAddr(text)
		return a.Unmap(), err == nil && a.Zone() == ""
	}, "an address, such as 10.1.0.1"}
	// hostsForm is of a netip.Prefix, also of an address alone.
	hostsForm = form{example("10.1.0.1", "fd00::/64"), func(text string) (any, bool) {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), true
		}
		p, err := netip.ParsePrefix(text)
		return p.Masked(), err == nil
	}, "an address or a prefix, such as 10.1.0.1 or 10.1.0.0/16"}
)

// number is a whole number in any notation of the configuration.
const number = "^[0-9a-fA-FxXoObB_]+$"

func bound(n float64) *float64 { return &n }

var (
	endParameters = []parameter{
		{name: "source_ip", description: "Address or prefix of the sender.", form: hostsForm},
		{name: "destination_ip", description: "Address or prefix of the receiver.", form: hostsForm},
		{name: "source_qp", description: "Confirmed QP of the sender.", form: qpForm},
		{name: "destination_qp", description: "QP of the receiver.", form: qpForm},
	}
	flowParameters = slices.Concat(endParameters, []parameter{
		{name: "qp_state", description: "State of the source QP.", form: oneOf(QPStates...)},
		{name: "qp_evidence", description: "How the source QP was found.", form: oneOf(QPEvidences...)},
		offsetParameter, limitParameter,
	})
	traceParameters = []parameter{
		{name: "source_ip", description: "The end that sends the requests.", required: true, form: hostForm},
		{name: "destination_ip", description: "The other end.", required: true, form: hostForm},
		{name: "source_qp", description: "QP of the end that sends the requests.", form: qpForm},
		{name: "destination_qp", description: "QP of the other end.", form: qpForm},
		{name: "duration", description: "How long to record, 10ms to 5s; 2s if not given.", form: within(10*time.Millisecond, 5*time.Second, "2s", "such as 2s")},
	}
	explainParameters = []parameter{
		{name: "source_ip", description: "The sender.", required: true, form: hostForm},
		{name: "destination_ip", description: "The receiver.", required: true, form: hostForm},
		{name: "qp", description: "Only flows with this QP at one end.", form: qpForm},
	}
	limitParameter    = parameter{name: "limit", description: "Greatest number of rows; \"more\" in the answer is true if there are others.", form: upTo(maxLimit, "a number from 1 to %d, or no limit")}
	offsetParameter   = parameter{name: "offset", description: "Number of rows to leave out at the beginning. With sort, offset and limit together are at most 4096.", form: upTo(maxLimit, "a number from 1 to %d, or no offset")}
	sortParameter     = parameter{name: "sort", description: "What the flows are sorted by, the largest first; 100 rows if limit is not given.", form: oneOf(Sorts...)}
	intervalParameter = parameter{name: "interval", description: "Time for which the flows' rates are measured, such as 1s.", form: within(MinInterval, MaxInterval, "1s", "such as 1s, or no interval")}

	notificationParameters = slices.Concat([]parameter{
		{name: "kind", description: "Kind of notification.", form: oneOf(Kinds...)},
		{name: "outcome", description: "Whether it was sent. Without this parameter, suppressed ones are left out.", form: oneOf(Outcomes...)},
	}, endParameters)
	reloadParameters = []parameter{
		{name: "dry_run", description: "Whether to change nothing, and only answer what would change.", form: truthForm},
		{name: "confirm", description: "Time after which the gateway goes back to the former configuration, unless this one is confirmed.", form: within(LeastConfirm, MostConfirm, "60s", "such as 60s")},
	}
	latestParameters = []parameter{
		{name: "limit", description: "Greatest number of notifications, the latest ones; 100 if not given.", form: upTo(MaxNotifications, "a number from 1 to %d")},
		{name: "frames", description: "Whether to include the frames.", form: truthForm},
	}
	packetParameters = []parameter{
		{name: "source_ip", description: "Address of the sender, required without drops.", form: hostForm},
		{name: "destination_ip", description: "Address of the receiver, required without drops.", form: hostForm},
		{name: "destination_qp", description: "QP of the receiver; without it, all packets between the addresses.", form: qpForm},
		{name: "drops", description: "Frames that are dropped, as they are then, for any reason or one of them; of any addresses if none are given.", form: oneOf(counters.ReasonNames()...)},
		{name: "decisions", description: "Whether to include what each stage decided about a packet.", form: truthForm},
		{name: "rate", description: "Greatest number of packets a second; 1000 if not given.", form: upTo(MostPackets, "a number of packets a second from 1 to %d")},
	}
	fleetParameters = []parameter{
		{name: "path", description: "Path and query of the request.", required: true, form: anyText(example("/v1/flows?limit=10"))},
	}
	hintParameters = []parameter{ // config.ParseQPPair reads them
		{name: "source_ip", description: "The host at one end.", required: true, form: anyText(hostForm.schema)},
		{name: "destination_ip", description: "The host at the other end.", required: true, form: anyText(hostForm.schema)},
		{name: "source_qp", description: "QP at source_ip.", required: true, form: anyText(qpForm.schema)},
		{name: "destination_qp", description: "QP at destination_ip.", required: true, form: anyText(qpForm.schema)},
		{name: "tags", description: "VLAN tags of the connection.", form: anyText(example("10", "0x88a8:10/20", "none"))},
		{name: "tunnel", description: "Tunnel of the connection.", form: anyText(example("vxlan:5000"))},
	}

	// QPStates are the states of QPs by which flows are selected.
	QPStates = names[pairing.State](pairing.Unknown, pairing.Confirmed)
	// QPEvidences are the kinds of evidence by which flows are selected.
	QPEvidences = names[pairing.Evidence](pairing.EvidenceNone, pairing.Evidences-1)
)

// ofPort is a parameter that is one of some ports, which the OpenAPI document doesn't have.
func ofPort(ports []string) parameter {
	f := oneOf(ports...)
	f.schema = &huma.Schema{Type: huma.TypeString}
	return parameter{name: "port", description: "Name of the port.", form: f}
}

// names are the words for the constants from first to last.
func names[T interface {
	~uint8
	String() string
}](first, last T) (all []string) {
	for v := first; v <= last; v++ {
		all = append(all, v.String())
	}
	return all
}
