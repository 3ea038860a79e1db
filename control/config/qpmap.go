package config

import (
	"errors"
	"net/netip"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/pairing"
)

// qpKey has the fields of a flow that its packets contain; the source QP is not among them.
type qpKey struct {
	source, destination netip.Addr
	destinationQP       uint32
	tags, tunnel        string
}

type qpEntry struct {
	sourceQP uint32
	at       *yamldoc.Node
}

// checkQPMap checks the pairs, each by itself and against the others.
func (r *resolver) checkQPMap() {
	s, seen := r.doc.QPMap, map[qpKey]qpEntry{}
	for i := range s {
		if e := &s[i]; r.checkEnds(e) {
			r.checkQPPair(e, seen)
		}
	}
}

// checkEnds checks the two ends of a pair, and reports whether they are usable.
func (r *resolver) checkEnds(e *QPPair) bool {
	problems := r.Mistakes()
	switch {
	case !r.Valid(&e.Source) || !r.Valid(&e.Destination) || !r.Valid(&e.SourceQP) || !r.Valid(&e.DestinationQP):
		return false
	case e.Source == e.Destination:
		r.Problem(&e.Destination, "%s is also the source%s; expected the address of the host at the other end", e.Destination, r.In(&e.Source))
	case e.Source.Is4() != e.Destination.Is4():
		r.Problem(&e.Destination, "%s is not of the same IP version as the source %s%s; expected two addresses of one version",
			e.Destination, e.Source, r.In(&e.Source))
	}
	r.checkOneTag(&e.Tags, &e.Tunnel)
	return r.Mistakes() == problems
}

func (r *resolver) checkOneTag(of, in *string) {
	if *in != "" && strings.Contains(*of, "/") {
		r.Problem(of, "%s is two tags, and in a tunnel one VID counts; expected one tag", yamldoc.Quote(*of))
	}
}

// checkScopes checks the scopes of two directions.
func (r *resolver) checkScopes() {
	for i := range r.doc.Pairing.Scopes {
		e := &r.doc.Pairing.Scopes[i]
		r.checkOneTag(&e.Tags, &e.Tunnel)
		r.checkOneTag(&e.OtherTags, &e.OtherTunnel)
		if of := e.Scopes(); of[0].Tenant() == of[1].Tenant() {
			r.Problem(e, "both directions are in the same VLAN or tunnel, which needs no entry; expected tags or tunnel, and others as other_tags or other_tunnel")
		}
	}
}

// checkQPPair reports an entry that contradicts an earlier one about the source QP of a flow, in its own direction or in the reverse
// one that it implies. Duplicate entries are harmless.
func (r *resolver) checkQPPair(e *QPPair, seen map[qpKey]qpEntry) {
	forward := qpKey{e.Source, e.Destination, e.DestinationQP, e.Tags, e.Tunnel}
	reverse := qpKey{e.Destination, e.Source, e.SourceQP, e.Tags, e.Tunnel}
	if r.contradicts(seen, forward, qpEntry{e.SourceQP, r.At(&e.SourceQP)}) ||
		r.contradicts(seen, reverse, qpEntry{e.DestinationQP, r.At(&e.DestinationQP)}) {
		return
	}
	seen[forward] = qpEntry{e.SourceQP, r.At(&e.SourceQP)}
	seen[reverse] = qpEntry{e.DestinationQP, r.At(&e.DestinationQP)}
}

func (r *resolver) contradicts(seen map[qpKey]qpEntry, key qpKey, entry qpEntry) bool {
	other, known := seen[key]
	if !known || other.sourceQP == entry.sourceQP {
		return false
	}
	r.Problem(entry.at, "from %s to QP %d at %s the source QP would be %d, but %s (%s) makes it %d; keep one of the two",
		key.source, key.destinationQP, key.destination, entry.sourceQP, other.at.Path, r.Position(other.at), other.sourceQP)
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
	r := &resolver{Document: yamldoc.New("", forms)}
	r.DecodeNode(&p, n, "")
	r.checkEnds(&p)
	var mistakes *Error
	if errors.As(r.Err(), &mistakes) {
		return QPPair{}, errors.New(mistakes.Problems[0].Text)
	}
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
