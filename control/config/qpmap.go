package config

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// qpKey has the fields of a flow that its packets contain; the source QP is not among them.
type qpKey struct {
	source, destination netip.Addr
	destinationQP       int64
	tags, tunnel        string
}

type qpEntry struct {
	sourceQP int64
	at       place
}

// checkQPMap checks the pairs, each by itself and against the others.
func checkQPMap(r *report, s *list[qpPairSection]) {
	seen := map[qpKey]qpEntry{}
	for i := range s.Items {
		if e := &s.Items[i]; checkEnds(r, e) {
			checkQPPair(r, e, seen)
		}
	}
}

// checkEnds checks the two ends of a pair, and reports whether they are usable.
func checkEnds(r *report, e *qpPairSection) bool {
	problems := len(r.problems)
	switch {
	case !e.Source.valid || !e.Destination.valid || !e.SourceQP.valid || !e.DestinationQP.valid:
		return false
	case e.Source.V == e.Destination.V:
		r.problem(e.Destination.place, "%s is also the source%s; expected the address of the host at the other end", e.Destination.V, r.in(e.Source.place))
	case e.Source.V.Is4() != e.Destination.V.Is4():
		r.problem(e.Destination.place, "%s is not of the same IP version as the source %s%s; expected two addresses of one version",
			e.Destination.V, e.Source.V, r.in(e.Source.place))
	}
	checkOneTag(r, &e.Tags, &e.Tunnel)
	return len(r.problems) == problems
}

func checkOneTag(r *report, of *tags, in *tunnel) {
	if in.V != "" && strings.Contains(of.V, "/") {
		r.problem(of.place, "%s is two tags, and in a tunnel one VID counts; expected one tag", quote(of.V))
	}
}

// checkScopes checks the scopes of two directions.
func checkScopes(r *report, s *list[scopePairSection]) {
	for i := range s.Items {
		e := &s.Items[i]
		checkOneTag(r, &e.Tags, &e.Tunnel)
		checkOneTag(r, &e.OtherTags, &e.OtherTunnel)
		p := ScopePair{e.Tags.V, e.Tunnel.V, e.OtherTags.V, e.OtherTunnel.V}
		if of := p.Scopes(); of[0].Tenant() == of[1].Tenant() {
			r.problem(e.place, "both directions are in the same VLAN or tunnel, which needs no entry; expected tags or tunnel, and others as other_tags or other_tunnel")
		}
	}
}

// checkQPPair reports an entry that contradicts an earlier one about the source QP of a flow, in its own direction or in the reverse
// one that it implies. Duplicate entries are harmless.
func checkQPPair(r *report, e *qpPairSection, seen map[qpKey]qpEntry) {
	forward := qpKey{e.Source.V, e.Destination.V, e.DestinationQP.V, e.Tags.V, e.Tunnel.V}
	reverse := qpKey{e.Destination.V, e.Source.V, e.SourceQP.V, e.Tags.V, e.Tunnel.V}
	if contradicts(r, seen, forward, qpEntry{e.SourceQP.V, e.SourceQP.place}) ||
		contradicts(r, seen, reverse, qpEntry{e.DestinationQP.V, e.DestinationQP.place}) {
		return
	}
	seen[forward] = qpEntry{e.SourceQP.V, e.SourceQP.place}
	seen[reverse] = qpEntry{e.DestinationQP.V, e.DestinationQP.place}
}

func contradicts(r *report, seen map[qpKey]qpEntry, key qpKey, entry qpEntry) bool {
	other, known := seen[key]
	if !known || other.sourceQP == entry.sourceQP {
		return false
	}
	r.problem(entry.at, "from %s to QP %d at %s the source QP would be %d, but %s (%s) makes it %d; keep one of the two",
		key.source, key.destinationQP, key.destination, entry.sourceQP, other.at.path, r.position(other.at), other.sourceQP)
	return true
}

// QPPairKeys are the keys of a QP pair, in a file or in an API request.
var QPPairKeys = []string{"source_ip", "destination_ip", "source_qp", "destination_qp", "tags", "tunnel"}

// ParseQPPair reads a pair that is not in a file, by the rules for qp_map's entries. values has a text for each key; an error
// begins with its key.
func ParseQPPair(values map[string]string) (p QPPair, err error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range QPPairKeys {
		if text, given := values[key]; given {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Value: text})
		}
	}
	r, e := &report{}, &qpPairSection{}
	(&decoder{r}).value(reflect.ValueOf(e).Elem(), n, place{}, rule{})
	checkEnds(r, e)
	if len(r.problems) > 0 {
		return p, errors.New(r.problems[0].Text)
	}
	fill(&p, e)
	return p, nil
}

// Stated is the pair as the workers use it.
func (p *QPPair) Stated() pairing.QPPair {
	s := pairing.QPPair{
		Source: packet.AddrFrom(p.Source), Destination: packet.AddrFrom(p.Destination), SourceQP: p.SourceQP, DestinationQP: p.DestinationQP,
	}
	s.Scope, s.InScope = p.Scope()
	return s
}
