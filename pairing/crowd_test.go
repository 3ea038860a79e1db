package pairing

import (
	"math/rand/v2"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"pgregory.net/rapid"
)

// crowd is connections that come and go at a site, of hosts that choose UDP source ports and first PSNs as they like.
type crowd struct {
	*site
	ports, zero int // kind of ports; whether PSNs begin at 0
	hosts       uint64
	r           *rand.Rand
	kept        map[connection]bool // connections that were paired and have sent since
}

const (
	portsFormula = iota
	portsEqual   // both directions have one port, not the formula's
	portsFew     // one of eight ports
	portsKinds
)

// begin adds connections.
func (c *crowd) begin(n int) {
	for range n {
		a, b := 1+c.r.Uint64N(c.hosts), 1+c.r.Uint64N(c.hosts)
		c.connect(a, b, c.r)
		last := &c.connections[len(c.connections)-1]
		switch c.ports {
		case portsEqual:
			last.port = 49152 + uint16(c.r.Uint32N(1<<14))
		case portsFew:
			last.port = 49152 + uint16(c.r.Uint32N(8))
		}
		if c.zero > 0 {
			last.psn = 0
		}
	}
}

// end stops connections.
func (c *crowd) end(n int) {
	for range min(n, len(c.connections)) {
		i := c.r.IntN(len(c.connections))
		c.connections[i] = c.connections[len(c.connections)-1]
		c.connections = c.connections[:len(c.connections)-1]
	}
}

// age lets 80 s pass, with two packets of each flow in between.
func (c *crowd) age() {
	c.now += 40e9
	c.exchange(2)
	c.now += 40e9
	for range 1 << 15 / 32 {
		c.workers[0].Sweep(c.now)
		c.workers[1].Sweep(c.now)
	}
}

// forge sends requests and acknowledgements to invented QPs between the hosts, with ports and PSNs of their connections.
func (c *crowd) forge(n int) {
	for range n {
		of := connection{host: [2]packet.Addr{{Hi: 1, Lo: 1 + c.r.Uint64N(c.hosts)}, {Hi: 2, Lo: 1 + c.r.Uint64N(c.hosts)}}, psn: c.r.Uint32(), port: 50000}
		if len(c.connections) > 0 {
			of = c.connections[c.r.IntN(len(c.connections))]
		}
		of.qp = [2]uint32{2 + c.r.Uint32N(packet.MaxQP-3), 2 + c.r.Uint32N(packet.MaxQP-3)}
		from := c.r.IntN(2)
		c.send(&of, from, [2]packet.Opcode{packet.RCSendOnly, packet.RCAcknowledge}[c.r.IntN(2)])
	}
}

// check fails the test for a wrong source QP, and for a connection that was paired, has sent since, and no longer is.
func (c *crowd) check(t rapid.TB) {
	known := map[connection]bool{}
	for i := range c.connections {
		of := c.connections[i]
		k := flowtable.Key{Src: of.host[0], Dst: of.host[1], DestQP: of.qp[1]}
		of.psn = 0
		a, ok := c.workers[0].find(&k)
		switch {
		case ok && a.Usable() && a.SourceQP() != of.qp[0]:
			t.Fatalf("connection %+v comes from another QP: %v", of, a)
		case ok && (a.Usable() || c.kept[of] && a.State() == Candidate && a.SourceQP() == of.qp[0]): // or suspended until its peer flow responds
			known[of] = true
		case c.kept[of]:
			t.Fatalf("connection %+v was paired, and is no longer: %v", of, a)
		}
	}
	c.kept = known
}

// TestCrowds: whatever connections begin and end between however many hosts, with whatever ports and first PSNs, beside scanners and forged packets, with a
// table that is large enough or full: no source QP is wrong, and a connection that is paired and sends stays so. With the ports of most RNICs and a table that
// is large enough, all are paired.
func TestCrowds(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		slots := rapid.SampledFrom([]int{200, 2000, 20_000}).Draw(t, "slots")
		c := crowd{site: newSite(outer, slots, 1<<15), r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
			ports: rapid.IntRange(0, portsKinds-1).Draw(t, "ports"), zero: rapid.IntRange(0, 1).Draw(t, "first PSN is 0"),
			hosts: rapid.SampledFrom([]uint64{1, 1, 2, 30, 1000}).Draw(t, "hosts")}
		honest := true
		begun := 0
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			n := rapid.SampledFrom([]int{1, 20, 300, 1500}).Draw(t, "n")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				c.begin(n)
				begun += n
			case 2:
				c.end(n)
			case 3:
				c.scan(7+c.r.Uint64N(3), n, c.r)
				begun += n
			case 4:
				c.forge(n)
				honest = false
			default: // what is idle ages
				c.age()
			}
			c.exchange(8)
			c.check(t)
		}
		c.exchange(40)
		c.check(t)
		if n, all := len(c.kept), len(c.connections); honest && c.ports == portsFormula && 2*begun <= slots && n < all-all/100 {
			t.Fatalf("%d of %d connections are paired", n, all)
		}
	})
}

// TestHiddenInBranches: of flows between two hosts that share a few ports, and whose PSNs begin at 0, some fit others by the formula by chance. None of
// those whose peer flows are out of sight gets a source QP, whatever part of the connections that is.
func TestHiddenInBranches(t *testing.T) {
	for name, hidden := range map[string]int{"all": 100, "half": 50, "one in ten": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(4, uint64(hidden)))
			c := crowd{site: newSite(t, 8000, 8000), hosts: 1, zero: 1, r: r}
			out := map[int]uint32{} // and where the other direction of another connection goes to
			c.begin(300)            // they fill the group, and show that the hosts use the formula
			for len(c.connections) < 1800 {
				if c.begin(1); c.connections[len(c.connections)-1].port>>7 != 0xc000>>7 { // 128 ports
					c.connections = c.connections[:len(c.connections)-1]
				} else if r.IntN(100) < hidden {
					out[len(c.connections)-1] = 2 + r.Uint32N(packet.MaxQP-3)
				}
			}
			c.frame[8] = 0x80 // AckReq
			for range 30 {
				for i := range c.connections {
					of := &c.connections[i]
					if out[i] == 0 {
						c.send(of, 0, packet.RCSendOnly)
						c.send(of, 1, packet.RCAcknowledge)
					} else { // two of which each sends in one direction
						c.send(of, 0, packet.RCSendOnly)
						another := *of
						another.qp[0] = out[i]
						c.send(&another, 1, packet.RCAcknowledge)
					}
					of.psn++
				}
			}
			known := 0
			for i := range c.connections {
				of := &c.connections[i]
				k := flowtable.Key{Src: of.host[0], Dst: of.host[1], DestQP: of.qp[1]}
				if a, ok := c.workers[0].find(&k); ok && a.Usable() {
					if known++; out[i] > 0 || a.SourceQP() != of.qp[0] {
						t.Errorf("connection %+v: %v", of, a)
					}
				}
			}
			t.Logf("%d of %d connections are paired", known, len(c.connections)-len(out))
		})
	}
}

// TestCrowdsWithEqualPorts: connections of two hosts on each side, with one UDP source port for both directions and PSNs from 0, more than a group's side has slots for. Then
// the flow with a flow's port is often not its peer flow, which is in another branch.
func TestCrowdsWithEqualPorts(t *testing.T) {
	for seed := range uint64(2 + 30*effort.Long) {
		c := crowd{site: newSite(t, 2000, 1<<15), r: rand.New(rand.NewPCG(12+seed, 0)), ports: portsEqual, zero: 1, hosts: 2}
		for _, n := range []int{1500, 0, 0, 300, 1500} {
			if n == 0 {
				c.age()
			}
			c.begin(n)
			c.exchange(8)
			c.check(t)
		}
	}
}
