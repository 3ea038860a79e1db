package config

import "strings"

// resolve turns a decoded document into a snapshot, and reports contradictions between keys. It is also called for a document with
// mistakes, so that all are reported together: each check uses only valid values, and the snapshot is then discarded.
func (r *report) resolve(doc *document) *Config {
	taps := r.resolveTaps(doc)
	cfg := &Config{
		document:      doc,
		Gateway:       Gateway{doc.Gateway.Name.V, doc.Gateway.IPv4.V, doc.Gateway.IPv6.V, r.resolveReflector(&doc.Gateway)},
		DPDK:          r.resolveDPDK(&doc.DPDK),
		Flows:         Flows{int(doc.Flows.Capacity.V), int(doc.Flows.Paired.V), doc.Flows.Aging.V},
		Endpoints:     r.resolveEndpoints(&doc.Endpoints),
		Notifications: r.resolveNotifications(doc),
		QPMap:         r.resolveQPMap(&doc.QPMap),
		Proxy:         r.resolveProxy(&doc.Proxy, &doc.Gateway),
		Domain:        r.resolveDomain(&doc.Domain),
		Management:    Management{strings.TrimPrefix(doc.Management.Listen.V, unixPrefix), doc.Management.Metrics.V, LogLevels[doc.Management.LogLevel.V]},
		Bypass:        r.resolveBypass(&doc.Bypass),
	}
	cfg.Ports = r.resolvePorts(doc)
	cfg.Notifications.Observe = cfg.Notifications.Observe || taps
	r.checkProfiles(doc)
	r.checkSources(doc)
	r.checkProxies(doc)
	r.warnUnused(doc)
	r.warnExamples()
	return cfg
}

// unique reports a value that an earlier entry has already, and returns false for it. seen has the values of the earlier entries.
func unique[K comparable](r *report, seen map[K]place, key K, at place, what string) bool {
	if first, twice := seen[key]; twice {
		r.problem(at, "%s is given twice; %s at %s also has it", what, first.path, r.position(first))
		return false
	}
	seen[key] = at
	return true
}
