package config

import "strings"

// resolve turns a decoded document into a snapshot, and reports what its keys contradict. It is called for a document with mistakes
// too, so that all of them are reported together: each check looks at valid values only, and the snapshot is then thrown away.
func (r *report) resolve(doc *document) *Config {
	cfg := &Config{
		Gateway:       Gateway{doc.Gateway.Name.V, doc.Gateway.IPv4.V, doc.Gateway.IPv6.V},
		DPDK:          r.resolveDPDK(&doc.DPDK),
		Flows:         Flows{int(doc.Flows.Capacity.V), int(doc.Flows.Paired.V), doc.Flows.Aging.V},
		Endpoints:     r.resolveEndpoints(&doc.Endpoints),
		Notifications: r.resolveNotifications(&doc.Notifications),
		QPMap:         r.resolveQPMap(&doc.QPMap),
		Proxy:         r.resolveProxy(&doc.Proxy),
		Domain:        r.resolveDomain(&doc.Domain),
		Management:    Management{strings.TrimPrefix(doc.Management.Listen.V, unixPrefix)},
	}
	cfg.Ports = r.resolvePorts(doc)
	r.checkSources(doc)
	r.checkLater(doc)
	return cfg
}

// checkLater makes sure that nothing the file asks for is silently left undone: what would change traffic is refused, the rest warned
// about.
func (r *report) checkLater(doc *document) {
	const refused = "true is not possible in this version; expected false, or no such section"
	for _, later := range []*toggle{&doc.Notifications.PPFC.Enabled, &doc.Notifications.StandardCNP.Enabled, &doc.Proxy.Enabled} {
		if later.V {
			r.problem(later.place, refused)
		}
	}
	const noEffect = "has no effect in this version"
	for i := range doc.Profiles.Entries {
		p := &doc.Profiles.Entries[i]
		for _, later := range []place{p.VECN.place, p.VGrowth.place, p.Interval.place, p.Actions.place} {
			if later.given {
				r.warn(later, noEffect)
			}
		}
	}
	p := &doc.Proxy
	for _, later := range []place{p.Listen.place, p.Senders.place, p.BGP.place, doc.Management.Metrics.place} {
		if later.given {
			r.warn(later, noEffect)
		}
	}
}

// unique reports a value that an earlier entry has already; seen is the caller's memory of them.
func unique[K comparable](r *report, seen map[K]place, key K, at place, what string) {
	if first, twice := seen[key]; twice {
		r.problem(at, "%s is given twice; %s at %s has it too", what, first.path, r.position(first))
		return
	}
	seen[key] = at
}
