package engine

import "github.com/cnpgate/cnpgate/sim/scenarios"

// MenuGroup is a part of the menu of scenarios.
type MenuGroup struct {
	Title     string      `json:"title"`
	Scenarios []MenuEntry `json:"scenarios"`
}

// MenuEntry is a scenario of the menu.
type MenuEntry struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

// menu groups the built-in scenarios, and says in a few words what is to be seen in each.
var menu = []struct {
	title   string
	entries [][2]string
}{
	{"Incasts", [][2]string{
		{"incast-10ms", "8 senders, 10 ms round trip"}, {"incast-1ms", "8 senders, 1 ms round trip"}, {"incast-40ms", "8 senders, 40 ms round trip"},
		{"many-hosts", "64 senders"}, {"legacy-mix", "old and new NICs together"}, {"slow-nics", "NICs that recover slowly"}, {"burst", "a burst that ends by itself"},
		{"slow-nics-lossless", "NICs that react late, and PFC"}, {"lag-member-fails", "half of the WAN fails for a time"},
	}},
	{"Mice and elephants", [][2]string{
		{"start-and-end", "flows of 2 to 100 MB that come and go"}, {"training-bursts", "senders that stop and begin each millisecond"},
	}},
	{"Unequal senders", [][2]string{
		{"qps-1-and-64", "1 QP beside 64"}, {"rtts-2-and-40ms", "receivers 2 and 40 ms away"}, {"half-obey", "half of the senders obey nothing"},
	}},
	{"Collectives", [][2]string{{"all-to-all", "all-to-all between two data centres"}, {"all-reduce-ring", "ring all-reduce"}, {"all-reduce-tree", "tree all-reduce"}}},
	{"Several gateways", [][2]string{
		{"two-gateways", "two congested gateways in a row"}, {"proxy", "a gateway as proxy of its senders"}, {"draft-tian-7", "the example of the draft"},
		{"four-gateways", "four gateways side by side share what they know"},
	}},
	{"Senders that don't obey", [][2]string{{"unresponsive", "the gateway paces them"}}},
	{"Congestion inside the data centres", [][2]string{{"two-dcs", "Themis: web search in two data centres"}}},
}

// Menu lists the built-in scenarios.
func Menu() (all []MenuGroup) {
	for _, m := range menu {
		g := MenuGroup{Title: m.title}
		for _, e := range m.entries {
			g.Scenarios = append(g.Scenarios, MenuEntry{e[0], e[1], scenarios.Summary(e[0])})
		}
		all = append(all, g)
	}
	return all
}
