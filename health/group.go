package health

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// mostPairs is how many of its pairs of hosts a verdict lists.
const mostPairs = 64

// About is one of several pairs of hosts, or places, that a verdict is about.
type About struct {
	Subject     string `json:"subject" doc:"The hosts, from the requester to the responder, or the one host."`
	Evidence    string `json:"evidence" doc:"How it shows there."`
	Connections int    `json:"connections" doc:"How many connections show it."`
	Weight      uint64 `json:"weight" doc:"How much it matters there."`
}

// grouped joins the verdicts of one name, as a cause is one answer however many hosts it concerns, and sorts them by weight.
func grouped(all []Verdict, gateway bool) []Verdict {
	slices.SortStableFunc(all, func(a, b Verdict) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Subject, b.Subject)) })
	out := make([]Verdict, 0, len(Names)) // never nil: in JSON it's []
	for rest := all; len(rest) > 0; {
		n := leading(rest, func(v *Verdict) string { return v.Name })
		var each []Verdict
		for of := rest[:n]; len(of) > 0; {
			same := leading(of, func(v *Verdict) string { return v.Subject })
			each, of = append(each, sumOf(of[:same])), of[same:]
		}
		v := joined(each)
		v.Title, v.Meaning, v.Commands = kinds[v.Name].title, kinds[v.Name].meaning, v.commands(gateway)
		out, rest = append(out, v), rest[n:]
	}
	slices.SortStableFunc(out, func(a, b Verdict) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// leading is how many of the first verdicts have the same key.
func leading(all []Verdict, key func(*Verdict) string) (n int) {
	for n < len(all) && key(&all[n]) == key(&all[0]) {
		n++
	}
	return n
}

// sumOf is the sum of verdicts. The rest is that of the worst one.
func sumOf(all []Verdict) Verdict {
	sum := slices.MaxFunc(all, func(a, b Verdict) int { return cmp.Compare(a.Weight, b.Weight) })
	sum.Connections, sum.Weight, sum.of = 0, 0, nil
	for i := range all {
		v := &all[i]
		sum.Connections += v.Connections
		sum.Weight += v.Weight
		sum.of = append(sum.of, v.of...)
		sum.timeout = max(sum.timeout, v.timeout)
	}
	return sum
}

// joined is one verdict about the subjects of several, and lists them.
func joined(each []Verdict) Verdict {
	if len(each) == 1 {
		return each[0]
	}
	sum := sumOf(each)
	slices.SortStableFunc(each, func(a, b Verdict) int { return cmp.Compare(b.Weight, a.Weight) })
	from, to := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for i := range each {
		v := &each[i]
		from[v.from], to[v.to] = true, true
		if i < mostPairs {
			sum.Pairs = append(sum.Pairs, About{v.Subject, v.Evidence, v.Connections, v.Weight})
		}
	}
	sum.Subject = fmt.Sprintf("%d hosts", len(each))
	if worst := &each[0]; worst.from.IsValid() {
		sum.Subject = hostsText(from, worst.from) + " -> " + hostsText(to, worst.to)
	}
	sum.Others = len(each) - len(sum.Pairs)
	sum.Evidence = each[0].Subject + ": " + each[0].Evidence
	return sum
}

// hostsText names one host, the prefix that all are in, or how many they are.
func hostsText(all map[netip.Addr]bool, one netip.Addr) string {
	if len(all) == 1 {
		return one.String()
	}
	for a := range all {
		if !a.IsValid() || prefixOf(a) != prefixOf(one) {
			return fmt.Sprintf("%d hosts", len(all))
		}
	}
	return fmt.Sprintf("%d hosts of %v", len(all), prefixOf(one))
}
