package scenario

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Gateway is a gateway of a scenario, as it is configured for a response.
type Gateway struct {
	Node   int
	Name   string
	Config *config.Config
	YAML   []byte // a configuration for cnpgate run, apart from the devices
}

// Gateways are the gateways as they are configured for a response, in the order of the nodes.
func (s *Scenario) Gateways(r Response) (all []Gateway, err error) {
	for i := range s.places {
		p := &s.places[i]
		section := s.section(p)
		if section == nil {
			return nil, s.doc.Err()
		}
		root := s.gatewayYAML(p, section, r)
		g := Gateway{Node: p.node, Name: p.name, Config: s.configuration(p, section, root)}
		if g.Config == nil {
			return nil, s.doc.Err()
		}
		if g.YAML, err = marshal(root); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b Gateway) int { return cmp.Compare(a.Node, b.Node) })
	return all, nil
}

// respond writes a response into a gateway's configuration.
func (s *Scenario) respond(root *yaml.Node, r Response) {
	if r == Configured {
		return
	}
	if r != Proxy {
		remove(root, "proxy")
	}
	format, notifies := r.format()
	notifications := entry(root, "notifications")
	for _, kind := range nicFormats {
		_, key, _ := strings.Cut(kind.Section(), ".")
		toggle := entry(entry(notifications, key), "enabled")
		*toggle = *boolean(toggle, notifies && (kind == format || kind == packet.StandardCNP))
	}
	endpoints := entry(root, "endpoints")
	*endpoints = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if !notifies {
		for _, port := range entry(root, "ports").Content {
			remove(port, "pacing")
		}
		return
	}
	for h := range s.hosts {
		accepted := format
		if o := s.obeys[h]; o != 0 && !o.has(format) { // a gateway obeys in place of a host that obeys nothing
			accepted = packet.StandardCNP
		}
		e := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
		setDefault(e, "prefix", hostPrefix(h).String())
		*entry(e, "accepts") = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{scalar(e, accepted.String())}}
		endpoints.Content = append(endpoints.Content, e)
	}
}

// remove removes a key.
func remove(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
			return
		}
	}
}

func boolean(where *yaml.Node, value bool) *yaml.Node {
	n := scalar(where, fmt.Sprint(value))
	n.Tag = "!!bool"
	return n
}

// marshal writes a YAML document.
func marshal(root *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return b.Bytes(), e.Close()
}
