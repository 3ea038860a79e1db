package scenario

import (
	"embed"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/sim"
)

// setHosts configures the hosts to respond with r. ppfc lists the hosts to which gateways send PPFC notifications, if r leaves that to the
// gateways.
func (s *Scenario) setHosts(c *sim.Config, r Response, ppfc []netip.Prefix) {
	const million = 1e6
	h := &s.d.Hosts
	const highPriority = 48 // DSCP, also of notifications
	c.Host = endpoint.Config{
		MTU: int(h.MTU), AckEvery: int(h.AckEvery), CNPInterval: max(int64(h.CNPInterval), 1), VariableWindow: h.VariableWindow,
		SelectiveRepeat: h.SelectiveRepeat, Timeout: s.timeout(),
	}
	if h.AckPriority {
		c.Host.AckDSCP = highPriority
	}
	d := &h.DCQCN
	c.Host.Reaction.RTT = max(s.rtt, 1)
	c.Host.Reaction.DCQCN = endpoint.DCQCNConfig{
		G: float64(d.Gain) / million, AlphaTimer: int64(d.AlphaTimer), DecreaseInterval: int64(d.DecreaseInterval),
		RateTimer: int64(d.RateTimer), ByteCounter: int64(d.ByteCounter), FastRecovery: int(d.FastRecovery),
		AdditiveIncrease: int64(d.AdditiveIncrease), HyperIncrease: int64(d.HyperIncrease), MinRate: int64(d.MinRate), HoldTarget: !d.Clamp,
		AtPeriodEnd: d.Cut == 1,
	}
	c.Host.Reaction.ReactionDelay, c.Host.Reaction.ReactionDelayMax = int64(h.Delay), max(int64(h.Delay), int64(h.DelayMax))
	if d.ByteCounter == 0 {
		c.Host.Reaction.DCQCN.ByteCounter = -1
	}
	for i := range s.places {
		a := s.gatewayAddr(&s.places[i])
		c.Host.Reaction.Trusted = append(c.Host.Reaction.Trusted, netip.PrefixFrom(a, a.BitLen()))
	}
	bdp := h.Window == 1
	c.EachHost = func(host int, e *endpoint.Config) {
		if bdp {
			e.Window = max(1, int64(float64(e.LineRate)*float64(s.rtt)/8e9)) // 0 would mean no window
		}
		s.react(&e.Reaction, host, r)
		address := hostPrefix(host).Addr()
		if r == Configured && s.obeys[host].has(packet.PPFC) && slices.ContainsFunc(ppfc, func(p netip.Prefix) bool { return p.Contains(address) }) {
			e.Reaction.Extension = packet.PPFC
		}
	}
}

// formats are the formats that a host obeys.
type formats uint8

func (f formats) has(format packet.Notification) bool { return f>>format&1 != 0 }

// nicFormats are the choices of hosts.obeys.
var nicFormats = [...]packet.Notification{packet.StandardCNP, packet.FastCNP, packet.LongHaulCNP, packet.PPFC}

// setFormats sets what each host obeys.
func (s *Scenario) setFormats() {
	h := &s.d.Hosts
	var all formats
	for i := range h.Obeys {
		all |= 1 << nicFormats[h.Obeys[i]]
	}
	legacy, unresponsive := s.marked(&h.Legacy), s.marked(&h.Unresponsive)
	s.obeys = make([]formats, s.hosts)
	for host := range s.obeys {
		switch {
		case unresponsive[host]:
		case legacy[host]:
			s.obeys[host] = all & (1 << packet.StandardCNP)
		default:
			s.obeys[host] = all
		}
	}
}

// timeout is how long a requester waits for an acknowledgement, ns. By default, that is four of the longest round trips, at least 4 ms, as
// queues on the path take time too.
func (s *Scenario) timeout() int64 {
	if t := &s.d.Hosts.Timeout; s.doc.Given(t) {
		return int64(*t)
	}
	const least = 4_000_000
	return max(least, 4*s.rtt)
}

// marked reports by host whether a text names it, such as "0-7,9"; no host if it isn't given.
func (s *Scenario) marked(t *string) []bool {
	out := make([]bool, s.hosts)
	if !s.doc.Given(t) {
		return out
	}
	for _, h := range s.hostList(t) {
		out[h] = true
	}
	return out
}

// hostList parses "all", or numbers and ranges of hosts such as "0-7,9".
func (s *topology) hostList(t *string) []int {
	if *t == "all" {
		all := make([]int, s.hosts)
		for h := range all {
			all[h] = h
		}
		return all
	}
	var out []int
	for _, part := range strings.Split(*t, ",") {
		first, last, err := hostRange(strings.TrimSpace(part), s.hosts)
		if err != nil {
			s.doc.Problem(t, "%v; expected all, or hosts such as 0-7,9, of 0 to %d", err, s.hosts-1)
			return nil
		}
		for h := first; h <= last; h++ {
			out = append(out, h)
		}
	}
	return out
}

func hostRange(text string, hosts int) (first, last int, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if first, err = strconv.Atoi(from); err == nil {
		if last = first; isRange {
			last, err = strconv.Atoi(to)
		}
	}
	if err != nil || first < 0 || last < first || last >= hosts {
		return 0, 0, fmt.Errorf("%q names no hosts", text)
	}
	return first, last, nil
}

// nics are the NICs that come with cnpgate, each with its sources.
//
//go:embed nics/*.yaml
var nics embed.FS

// NICs returns the names of the NICs that come with cnpgate, in alphabetical order.
func NICs() (names []string) {
	entries, _ := nics.ReadDir("nics") // it is embedded
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// readNIC returns the file of a NIC: one of ours, or the operator's.
func readNIC(name string, files Files) ([]byte, error) {
	if text, err := nics.ReadFile("nics/" + name + ".yaml"); err == nil {
		return text, nil
	}
	if !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("there is no NIC %q; expected %s, or a file such as my-nic.yaml", name, strings.Join(NICs(), ", "))
	}
	return files(name)
}

// fitNIC adds to a scenario's hosts what the file of their NIC has and they haven't.
func fitNIC(root *yaml.Node, files Files) error {
	hosts := find(root, "hosts")
	if hosts == nil {
		return nil
	}
	nic := find(hosts, "nic")
	if nic == nil || nic.Kind != yaml.ScalarNode {
		return nil // a mistake, if any, shows when the scenario is read
	}
	text, err := readNIC(nic.Value, files)
	if err != nil {
		return fmt.Errorf("hosts.nic: %w", err)
	}
	doc, err := config.ParseDocument(nic.Value, "name and source", text)
	if err != nil {
		return err
	}
	doc.Decode(&nicDocument{})
	if err := doc.Err(); err != nil {
		return err
	}
	for i := 0; i+1 < len(doc.Root.Content); i += 2 {
		if key := doc.Root.Content[i].Value; key != "name" && key != "source" {
			merge(hosts, key, doc.Root.Content[i+1])
		}
	}
	return nil
}

// merge adds to a mapping what a value of a key has and the mapping hasn't.
func merge(into *yaml.Node, key string, value *yaml.Node) {
	if into.Kind != yaml.MappingNode {
		return
	}
	have := find(into, key)
	switch {
	case have == nil:
		into.Content = append(into.Content, scalar(into, key), value)
	case value.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(value.Content); i += 2 {
			merge(have, value.Content[i].Value, value.Content[i+1])
		}
	}
}
