package config

import (
	"fmt"
	"net/netip"
	"reflect"
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

func (r *report) resolveQPMap(s *list[qpPairSection]) []QPPair {
	var pairs []QPPair
	seen := map[qpKey]qpEntry{}
	for i := range s.Items {
		e := &s.Items[i]
		if !e.Source.valid || !e.Destination.valid || !e.SourceQP.valid || !e.DestinationQP.valid {
			continue
		}
		if e.Source.V == e.Destination.V {
			r.problem(e.Destination.place, "%s is also the source (%s); expected the address of the host at the other end",
				e.Destination.V, r.position(e.Source.place))
			continue
		}
		if e.Source.V.Is4() != e.Destination.V.Is4() {
			r.problem(e.Destination.place, "%s is not of the same IP version as the source %s (%s); expected two addresses of one version",
				e.Destination.V, e.Source.V, r.position(e.Source.place))
			continue
		}
		if why := scopeError(e.Tags.V, e.Tunnel.V); why != "" {
			r.problem(e.Tags.place, "%s", why)
			continue
		}
		r.checkQPPair(e, seen)
		pairs = append(pairs, QPPair{e.Source.V, e.Destination.V, uint32(e.SourceQP.V), uint32(e.DestinationQP.V), e.Tags.V, e.Tunnel.V})
	}
	return pairs
}

// checkQPPair reports an entry that contradicts an earlier one about the source QP of a flow, in its own direction or in the reverse
// one that it implies. Duplicate entries are harmless.
func (r *report) checkQPPair(e *qpPairSection, seen map[qpKey]qpEntry) {
	forward := qpKey{e.Source.V, e.Destination.V, e.DestinationQP.V, e.Tags.V, e.Tunnel.V}
	reverse := qpKey{e.Destination.V, e.Source.V, e.SourceQP.V, e.Tags.V, e.Tunnel.V}
	if r.contradicts(seen, forward, qpEntry{e.SourceQP.V, e.SourceQP.place}) ||
		r.contradicts(seen, reverse, qpEntry{e.DestinationQP.V, e.DestinationQP.place}) {
		return
	}
	seen[forward] = qpEntry{e.SourceQP.V, e.SourceQP.place}
	seen[reverse] = qpEntry{e.DestinationQP.V, e.DestinationQP.place}
}

func (r *report) contradicts(seen map[qpKey]qpEntry, key qpKey, entry qpEntry) bool {
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
func ParseQPPair(values map[string]string) (QPPair, error) {
	rules := map[string]rule{}
	for _, f := range fieldsOf(reflect.TypeFor[qpPairSection]()) {
		rules[f.key] = f.rule
	}
	var p QPPair
	for _, key := range []struct {
		name string
		to   *netip.Addr
	}{{"source_ip", &p.Source}, {"destination_ip", &p.Destination}} {
		if err := parseKey(values, rules, key.name, addressKind{}, key.to); err != nil {
			return p, err
		}
	}
	if p.Source == p.Destination {
		return p, fmt.Errorf("destination_ip: %s is also the source; expected the address of the host at the other end", p.Destination)
	}
	if p.Source.Is4() != p.Destination.Is4() {
		return p, fmt.Errorf("destination_ip: %s is not of the same IP version as the source %s; expected two addresses of one version", p.Destination, p.Source)
	}
	for _, key := range []struct {
		name string
		to   *uint32
	}{{"source_qp", &p.SourceQP}, {"destination_qp", &p.DestinationQP}} {
		var qp int64
		if err := parseKey(values, rules, key.name, integerKind{}, &qp); err != nil {
			return p, err
		}
		*key.to = uint32(qp)
	}
	return p, parseScope(values, rules, &p)
}

// parseScope reads the tags and the tunnel of a pair, which it need not have.
func parseScope(values map[string]string, rules map[string]rule, p *QPPair) error {
	if _, given := values["tags"]; given {
		if err := parseKey(values, rules, "tags", tagsKind{}, &p.Tags); err != nil {
			return err
		}
	}
	if _, given := values["tunnel"]; given {
		if err := parseKey(values, rules, "tunnel", tunnelKind{}, &p.Tunnel); err != nil {
			return err
		}
	}
	if why := scopeError(p.Tags, p.Tunnel); why != "" {
		return fmt.Errorf("tags: %s", why)
	}
	return nil
}

func parseKey[T any](values map[string]string, rules map[string]rule, key string, k interface {
	parse(string, rule) (T, error)
	expects(rule) string
}, to *T) error {
	text, given := values[key]
	if !given {
		return fmt.Errorf("%s: missing; expected %s", key, k.expects(rules[key]))
	}
	v, err := k.parse(text, rules[key])
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	*to = v
	return nil
}
