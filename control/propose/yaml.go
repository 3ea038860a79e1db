package propose

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/netif"
	"github.com/cnpgate/cnpgate/internal/units"
)

const (
	metrics  = "127.0.0.1:9456"
	leastMTU = 576 // of ports[].mtu
	mostMTU  = 16000
	// hugeNeeded is the rate (bit/s) above which the kernel's packet sockets are slower than the link.
	hugeNeeded = 10e9

	dscpCNP, dscpControl = 48, 56
)

// YAML is the configuration as far as it is known.
func (p *Proposal) YAML() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	does := "forwards all frames, marks none, and only counts"
	if p.Tap {
		does = "transmits nothing, and counts"
	}
	line("# Proposed by `%s`. It observes: it %s the notifications that it would send.", p.Command, does)
	line("# Next: cnpgate check --config FILE; cnpgate run --config FILE; cnpgate show notifications. docs/configuration.md explains the keys.")
	line("gateway:\n  name: %q", p.Name)
	line("  # ipv4, ipv6: the gateway's own addresses, needed by other notifications than the standard CNP, whose source is the receiver")
	line("\ndpdk:")
	line("  hugepages: false # the kernel passes the frames (af_packet), so that no driver has to be bound")
	line("  workers: [%d] # a core; best one that nothing else uses", p.Core)
	line("  idle: backoff # sleeps when idle")
	line("\nports:")
	p.port(line, &p.Fabric, dataplane.Fabric, 0)
	p.port(line, &p.WAN, dataplane.WAN, 1)
	line("\nflows: {capacity: 64Ki}")
	p.endpoints(line)
	line("\nnotifications:")
	if p.Tap {
		line("  mode: observe # all that mirror ports allow")
	} else {
		line("  mode: observe # send, once `cnpgate show notifications` shows what you expect")
	}
	line("  standard_cnp: {enabled: true} # the format that NICs sold today obey")
	line("\n# domain: {members: [...]} # drops notifications, and frames that may hide one, that cross the WAN port. Not proposed: it needs to be decided")
	line("\nmanagement:")
	line("  listen: %q", "unix:"+p.Socket)
	line("  metrics: %s # Prometheus reads http://%s/metrics", metrics, metrics)
	return b.String()
}

type printer func(format string, args ...any)

func (p *Proposal) port(line printer, f *netif.Facts, role dataplane.Role, number int) {
	peer, rate := dataplane.WAN, f.Rate
	if role == dataplane.WAN {
		peer = dataplane.Fabric
		if p.Rate > 0 {
			rate = p.Rate
		}
	}
	known := "the interface's"
	switch {
	case role == dataplane.WAN && p.Rate > 0:
		known = "the line's, as given"
	case rate == 0:
		rate, known = unknownRate, "a guess: the interface doesn't tell its rate"
	case role == dataplane.WAN:
		known += "; set that of the line behind it if it is lower, so that the queue builds up here"
	}
	line("  # %s", describe(f))
	if f.PCI != "" {
		line("  # For the NIC's full rate, bind it to vfio-pci (deploy/README.md), and set hugepages: true and device: %q", f.PCI)
	}
	line("  - name: %v", role)
	single := p.Hosts != nil
	if single && role == dataplane.WAN {
		line("    device: net_null0,no-rx=1 # receives nothing: the WAN's frames arrive by the other port, too")
	} else {
		line("    device: %q", fmt.Sprintf("net_af_packet%d,iface=%s", number, f.Name))
	}
	switch {
	case single && role == dataplane.Fabric:
		line("    role: tap # only receives\n    mirrors: both\n    fabric_hosts: [%s] # what they send comes from the fabric\n    peer: %v", quoted(p.Hosts), peer)
	case p.Tap:
		line("    role: tap # only receives\n    mirrors: %v\n    peer: %v", role, peer)
	default:
		line("    role: %v\n    peer: %v", role, peer)
	}
	line("    rate: %s # %s", units.Exact(rate, units.Rates), known)
	if rate < slowRate {
		const parts = 10 // of a second
		line("    queue_capacity: %dKB # 100 ms; the default is for faster lines, and RC connections break if packets wait for longer than about half a second",
			max(rate/8/parts/1000, 64))
	}
	if role == dataplane.WAN {
		p.roundTrip(line)
	}
	line("    mtu: %d # the interface's", min(max(f.MTU, leastMTU), mostMTU))
	if role == dataplane.WAN {
		p.classes(line)
	}
}

// slowRate is the rate below which the default queue capacity of 32 MB delays packets by more than half a second, bit/s.
const slowRate = 512_000_000

func quoted(all []netip.Prefix) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = strconv.Quote(p.String())
	}
	return strings.Join(texts, ", ")
}

// describe is an interface in one line.
func describe(f *netif.Facts) string {
	parts := []string{"interface " + f.Name}
	if f.Driver != "" {
		parts = append(parts, "driver "+f.Driver)
	}
	if f.Rate > 0 {
		parts = append(parts, units.Exact(f.Rate, units.Rates))
	} else {
		parts = append(parts, "rate not known")
	}
	parts = append(parts, fmt.Sprintf("MTU %d", f.MTU))
	if f.PCI != "" {
		parts = append(parts, "PCI address "+f.PCI)
	}
	if f.NUMA >= 0 {
		parts = append(parts, fmt.Sprintf("NUMA node %d", f.NUMA))
	}
	if len(f.Offloads) > 0 {
		parts = append(parts, "offloads "+strings.Join(f.Offloads, " "))
	}
	if len(f.Addresses) > 0 {
		parts = append(parts, "addresses "+joined(f.Addresses))
	}
	return strings.Join(parts, ", ")
}

func joined[T any](values []T) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ", "), "[]")
}

func (p *Proposal) roundTrip(line printer) {
	if p.Tap {
		line("    # rtt: 10ms # set the path's round-trip time")
		return
	}
	if rtt := p.rtt(); rtt > 0 {
		line("    rtt: %v # measured while listening", rtt.Round(time.Microsecond))
	} else {
		line("    # rtt: 10ms # not seen: set the path's round-trip time; it is used until one is measured")
	}
	line("    rtt_sources: [passive, configured] # measured by the data packets to at least three receivers and their ACKs")
}

// classes puts RoCEv2 into a class of its own, if it has DSCPs of its own.
func (p *Proposal) classes(line printer) {
	dscps := seen(p.fabric.dscps[:])
	if len(dscps) == 0 || p.fabric.dscps[0] > 0 || p.fabric.dscps[dscpCNP] > 0 || p.fabric.dscps[dscpControl] > 0 {
		return
	}
	line("    traffic_classes: # strict priority, first to last")
	line("      - {name: control, dscp: [%d, %d]} # CNPs and routing protocols", dscpCNP, dscpControl)
	line("      - {name: roce, dscp: [%s]} # seen on RoCEv2 packets%s", joined(dscps), p.priorities())
	line("      - {name: rest}")
}

// priorities describes the priorities of the fabric's VLAN tags, "" for none.
func (p *Proposal) priorities() string {
	all := seen(p.fabric.priorities[:])
	if len(all) == 0 {
		return ""
	}
	return ", with VLAN priority " + joined(all)
}

func (p *Proposal) endpoints(line printer) {
	line("\n# Senders that may be notified, and the formats that they obey: the hosts that sent RoCEv2 from the fabric.")
	all := prefixesOf(p.fabric.hosts, p.wan.hosts)
	if len(all) == 0 {
		line("# None was seen, so nothing is notified. Add such as {prefix: 10.1.0.0/16, accepts: [standard-cnp]}, or listen again while RoCEv2 is sent.")
		line("endpoints: []")
		return
	}
	line("endpoints:")
	for _, prefix := range all {
		hosts, packets := 0, uint64(0)
		for host, n := range p.fabric.hosts {
			if prefix.Contains(host) {
				hosts, packets = hosts+1, packets+n
			}
		}
		line("  - {prefix: %q, accepts: [standard-cnp]} # hosts: %d, packets: %d", prefix, hosts, packets)
	}
}
