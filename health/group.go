package health

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// fewEnough is how many subjects one verdict may have in a report: more are summed by host, by prefix, or all in one.
const fewEnough = 20

// grouped joins verdicts with the same name and subject, those of one name with too many subjects further, and sorts them by weight.
func grouped(all []Verdict, gateway bool) []Verdict {
	slices.SortStableFunc(all, func(a, b Verdict) int { return cmp.Compare(a.Name, b.Name) })
	out := make([]Verdict, 0, min(len(all), 64)) // never nil: in JSON it's []
	for rest := all; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Name == rest[0].Name {
			n++
		}
		out, rest = append(out, ofOne(rest[:n])...), rest[n:]
	}
	slices.SortStableFunc(out, func(a, b Verdict) int { return cmp.Compare(b.Weight, a.Weight) })
	for i := range out {
		out[i].Commands = out[i].commands(gateway)
	}
	return out
}

// ofOne groups verdicts of one name in the first of several ways that leaves few enough.
func ofOne(all []Verdict) []Verdict {
	merged := merge(all, func(v *Verdict) string { return v.Subject })
	for _, by := range []func(*Verdict) string{byResponder, byRequester, byPrefixes, func(*Verdict) string { return "" }} {
		if len(merged) <= fewEnough {
			break
		}
		merged = merge(all, by)
	}
	return merged
}

func (v *Verdict) ofHosts() bool { return v.from.IsValid() }

func byResponder(v *Verdict) string {
	if !v.ofHosts() {
		return v.Subject
	}
	return "-> " + v.to.String()
}

func byRequester(v *Verdict) string {
	if !v.ofHosts() {
		return v.Subject
	}
	return v.from.String() + " ->"
}

func byPrefixes(v *Verdict) string {
	if !v.ofHosts() {
		return v.Subject
	}
	return prefixes{prefixOf(v.from), prefixOf(v.to)}.String()
}

// merge joins verdicts with the same key. The evidence and the advice are those of the worst one.
func merge(all []Verdict, key func(*Verdict) string) (out []Verdict) {
	groups := map[string][]*Verdict{}
	var keys []string
	for i := range all {
		k := key(&all[i])
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], &all[i])
	}
	slices.Sort(keys)
	for _, k := range keys {
		out = append(out, join(groups[k]))
	}
	return out
}

// join is the sum of verdicts. Its subject are the hosts that they are about, or how many those are.
func join(all []*Verdict) Verdict {
	worst := slices.MaxFunc(all, func(a, b *Verdict) int { return cmp.Compare(a.Weight, b.Weight) })
	sum := *worst
	sum.Connections, sum.Weight, sum.of = 0, 0, nil
	one := true
	from, to := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, v := range all {
		sum.Connections += v.Connections
		sum.Weight += v.Weight
		sum.of = append(sum.of, v.of...)
		sum.timeout = max(sum.timeout, v.timeout)
		from[v.from], to[v.to] = true, true
		one = one && v.Subject == sum.Subject
	}
	if one {
		return sum
	}
	sum.Evidence = fmt.Sprintf("%d connections show it; the worst is %s: %s", sum.Connections, worst.Subject, worst.Evidence)
	sum.Subject = hostsText(from, worst.from) + " -> " + hostsText(to, worst.to)
	if !worst.ofHosts() {
		sum.Subject = fmt.Sprintf("%d subjects", len(all))
	}
	return sum
}

// hostsText names one host, the prefix that all are in, or how many they are.
func hostsText(all map[netip.Addr]bool, one netip.Addr) string {
	if len(all) == 1 {
		return one.String()
	}
	for a := range all {
		if prefixOf(a) != prefixOf(one) {
			return fmt.Sprintf("%d hosts", len(all))
		}
	}
	return fmt.Sprintf("%d hosts of %v", len(all), prefixOf(one))
}
