package config

import "net/netip"

// resolveDomain returns nil, no domain filter, if the file has no domain.
func (r *report) resolveDomain(s *domainSection) *Domain {
	if !s.given {
		return nil
	}
	if s.valid && !s.Members.given {
		r.problem(s.Members.place, "missing; expected %s, or no domain section for no domain filter", s.Members.expects(rule{}))
	}
	if s.valid && !s.NotificationSources.given {
		r.problem(s.NotificationSources.place, "missing; expected %s, which may be empty: []", s.NotificationSources.expects(rule{}))
	}
	if s.Members.valid && len(s.Members.Items) == 0 {
		r.problem(s.Members.place, "is empty, so no notification could leave by a WAN port; expected at least one prefix")
	}
	return &Domain{s.Mode.V == modeObserve, r.prefixes(&s.Members), r.prefixes(&s.NotificationSources)}
}

func (r *report) prefixes(s *list[prefix]) []netip.Prefix {
	var prefixes []netip.Prefix
	seen := map[netip.Prefix]place{}
	for i := range s.Items {
		if p := &s.Items[i]; p.valid {
			unique(r, seen, p.V, p.place, "the prefix "+p.V.String())
			prefixes = append(prefixes, p.V)
		}
	}
	return prefixes
}
