package replay_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// scenario is one replay of a capture.
type scenario struct {
	name   string
	path   string
	fabric []netip.Prefix
	config string
	kind   string   // the one kind of notification that may be sent; "" for none
	truth  [][2]any // address and QP of all that a notification may name; nil where a capture doesn't tell
	pairs  [][4]any // source and destination address, destination QP and true source QP of the capture's flows

	mayMiss bool // the evidence for source QPs may be insufficient
}

// side is who is in the data centre.
type side struct {
	name   string
	fabric []netip.Prefix
}

var sides = []side{
	{"client", prefixes("198.18.0.2/32", "fd00:18::2/128")},
	{"server", prefixes("198.18.0.1/32", "fd00:18::1/128")},
	{"both", prefixes("198.18.0.0/30", "fd00:18::/126")},
	{"neither", prefixes("10.0.0.0/8")},
}

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

const gatewayAddresses = `gateway: {name: acceptance, ipv4: 192.0.2.1, ipv6: "fd00:ffff::1"}
flows: {capacity: 1Ki}
`

// everyoneIsTold grants every format to every host: a sender that isn't notified didn't cause congestion.
const everyoneIsTold = `endpoints: [{prefix: "::/0", accepts: [fast-cnp, long-haul-cnp]}, {prefix: 0.0.0.0/0, accepts: [long-haul-cnp]}]
notifications: {fast_cnp: {enabled: true}, long_haul_cnp: {enabled: true}}
`

// uncongested are the captures at lines that never have two frames waiting for long.
func uncongested(t *testing.T) (all []*scenario) {
	for _, c := range captures(t) {
		for _, s := range sides {
			all = append(all, &scenario{
				name: c.name + "/" + s.name, path: c.path, fabric: s.fabric, pairs: truePairs(c),
				config: gatewayAddresses + everyoneIsTold + qpMap(c) + `ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 100Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 100Gbps}
`,
			})
		}
	}
	return all
}

// some are all scenarios in the longer mode; by default they are one in 11, which has no common factor with the numbers of ways, sides and captures.
func some(all []*scenario) (few []*scenario) {
	for n := 0; n < len(all); n += 11 - 10*effort.Long {
		few = append(few, all[n])
	}
	return few
}

// way is a way to notify senders.
type way struct {
	name    string
	kind    string // as in accepts
	family  int    // the captures it is for; 0 for both
	mapped  bool   // the QP map has the truth
	granted string // the hosts that accept it
	limits  string
}

const everyHost = `"::/0", 0.0.0.0/0`

var ways = []way{
	{name: "fast-cnp", kind: "fast-cnp", family: 6, mapped: true, granted: everyHost},
	{name: "fast-cnp-unmapped", kind: "fast-cnp", family: 6, granted: everyHost},
	{name: "long-haul-cnp", kind: "long-haul-cnp", mapped: true, granted: everyHost},
	{name: "long-haul-cnp-unmapped", kind: "long-haul-cnp", granted: everyHost},
	{name: "long-haul-cnp-icmpv6", kind: "long-haul-cnp-icmpv6", family: 6, mapped: true, granted: everyHost},
	{name: "others-granted", kind: "long-haul-cnp", mapped: true, granted: `"fd00:19::/64", 198.18.0.4/30`},
	{name: "limit-per-flow", kind: "long-haul-cnp", mapped: true, granted: everyHost, limits: "per_flow: 50ms"},
	{name: "limit-per-destination", kind: "long-haul-cnp", mapped: true, granted: everyHost, limits: "per_flow: 0s, per_destination: 70/s"},
	{name: "limit-per-port", kind: "long-haul-cnp", mapped: true, granted: everyHost, limits: "per_flow: 0s, per_port: 150/s"},
}

// congested returns the captures at a WAN line of a tenth of the offered rate, with each notification format, and once with a queue so small
// that it overflows.
func congested(t *testing.T) (all []*scenario) {
	for _, c := range captures(t) {
		for _, s := range sides[:2] {
			rate := tenth(t, c, s)
			for _, w := range ways {
				if w.family == 0 || w.family == c.truth.Family {
					all = append(all, congestedBy(c, s, w, rate, "1MiB"))
				}
			}
			all = append(all, congestedBy(c, s, way{name: "tail-drop", kind: "long-haul-cnp", mapped: true, granted: everyHost}, rate, "9KB"))
		}
	}
	return all
}

func congestedBy(c capture, s side, w way, rate uint64, capacity string) *scenario {
	kind := w.kind
	if c.truth.Family == 4 && kind != "long-haul-cnp" || w.name == "others-granted" {
		kind = ""
	}
	out := &scenario{name: c.name + "/" + s.name + "/" + w.name, path: c.path, fabric: s.fabric, kind: kind, truth: truths(c), pairs: truePairs(c)}
	out.config = gatewayAddresses + fmt.Sprintf(`ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 1Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: %dbps, queue_capacity: %s}
profiles: {default: {mode: thresholds, k_base: 6KB}}
notifications: {fast_cnp: {enabled: true}, long_haul_cnp: {enabled: true}, limits: {%s}}
endpoints:
`, rate, capacity, w.limits)
	for _, prefix := range strings.Split(w.granted, ", ") {
		if strings.Contains(prefix, ":") || w.kind == "long-haul-cnp" {
			out.config += fmt.Sprintf("  - {prefix: %s, accepts: [%s]}\n", prefix, w.kind)
		}
	}
	if w.mapped {
		out.config += qpMap(c)
	}
	return out
}

// qpMap is the truth about a capture's connections, as an operator would write it.
func qpMap(c capture) string {
	var b strings.Builder
	b.WriteString("qp_map:\n")
	for _, q := range c.truth.Connections {
		if q.Type != "UD" { // they have no peer, and carry their source QP
			fmt.Fprintf(&b, "  - {source_ip: %q, destination_ip: %q, source_qp: %d, destination_qp: %d}\n", q.ClientIP, q.ServerIP, q.ClientQPN, q.ServerQPN)
		}
	}
	if b.Len() == len("qp_map:\n") {
		return ""
	}
	return b.String()
}

func truths(c capture) (all [][2]any) {
	for _, q := range c.truth.Connections {
		all = append(all, [2]any{q.ClientIP, q.ClientQPN}, [2]any{q.ServerIP, q.ServerQPN})
	}
	return all
}

func truePairs(c capture) (all [][4]any) {
	for _, q := range c.truth.Connections {
		all = append(all, [4]any{q.ClientIP, q.ServerIP, q.ServerQPN, q.ClientQPN}, [4]any{q.ServerIP, q.ClientIP, q.ClientQPN, q.ServerQPN})
	}
	return all
}

// tenth is a tenth of the rate at which the data centre offers octets to the WAN while it offers any, and no less than a port can have.
func tenth(t *testing.T, c capture, s side) uint64 {
	t.Helper()
	var octets, first, last int64
	for _, f := range frames(t, readFile(t, c.path)) {
		p := f.parse()
		if !inside(s.fabric, p.Src.Netip()) || p.Proto != 17 { // TCP comes long before the load
			continue
		}
		if first == 0 {
			first = f.at
		}
		octets, last = octets+int64(f.length)+24, f.at
	}
	if last == first {
		return 100_000
	}
	return max(100_000, uint64(octets*8*int64(time.Second)/(last-first)/10))
}

func inside(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
