package runner

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
	"github.com/cnpgate/cnpgate/internal/packet"
)

const wanRate = 100e6 // bit/s

// TestNotificationsHelp: a sender that offers three times the WAN's rate slows down on the gateway's notifications. Then nothing is lost,
// the queue is short, and the WAN is used. Without notifications the queue is full and frames are lost.
func TestNotificationsHelp(t *testing.T) {
	off := newNetwork(t, sending(), answering(sending()), "")
	off.run(3 * second)
	without := off.ends[0].Report()
	if off.dropped() == 0 || off.peak < 3_900_000 || without.Sent.Retransmitted == 0 {
		t.Fatalf("without notifications: %d dropped, peak %d, %d sent again; expected a full queue", off.dropped(), off.peak, without.Sent.Retransmitted)
	}
	off.close()
	for _, c := range []struct {
		kind    packet.Notification
		prepare func(kind packet.Notification) (sender Config, gateway string)
	}{
		{packet.LongHaulCNP, over6}, {packet.LongHaulCNP, over4}, {packet.LongHaulCNPICMPv6, over6}, {packet.FastCNP, over6}, {packet.PPFC, over6}, {packet.PPFC, over4},
	} {
		s, settings := c.prepare(c.kind)
		t.Run(fmt.Sprint(c.kind, " to ", s.Addr), func(t *testing.T) {
			n := newNetwork(t, s, answering(s), settings)
			n.run(3 * second)
			r := n.ends[0].Report()
			t.Logf("peak %d, goodput %.1f Mbit/s, %v", n.peak, r.GoodputBps/1e6, r.Notifications.Accepted)
			if n.dropped() != 0 || n.peak > off.peak/10 {
				t.Errorf("%d dropped, peak %d; without notifications %d, %d; expected none, and a tenth at most", n.dropped(), n.peak, off.dropped(), off.peak)
			}
			if r.GoodputBps < 0.95*wanRate {
				t.Errorf("the goodput is %.1f Mbit/s, expected 95 at least", r.GoodputBps/1e6)
			}
			if sum(r.Notifications.Accepted) != uint64(n.built) || len(r.Notifications.Refused) != 0 {
				t.Errorf("the gateway sent %d notifications, the sender reports %+v", n.built, r.Notifications)
			}
			if cnps := n.ends[1].Report().Sent.CNPs; cnps != 0 {
				t.Errorf("the receiver, which is to send none, sent %d CNPs", cnps)
			}
			n.close()
		})
	}
}

func sum(counts map[string]uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// TestWhatIsObeyed: notifications from outside the access list, or in a format that isn't accepted, slow no sender down; the receiver's
// CNPs do.
func TestWhatIsObeyed(t *testing.T) {
	for _, c := range []struct {
		name              string
		change            func(sender, receiver *Config)
		accepted, refused string
	}{
		{"an untrusted gateway", func(s, _ *Config) { s.Trusted = []netip.Prefix{netip.MustParsePrefix("fd00:19::/32")} }, "", "untrusted-source"},
		{"a format that isn't accepted", func(s, _ *Config) { s.Accept = nil }, "", "disabled"},
		{"the receiver's CNPs", func(s, r *Config) { s.Accept, r.NoCNP = nil, false }, "slowed-down", "disabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sending(packet.FastCNP)
			r := answering(s)
			c.change(&s, &r)
			n := newNetwork(t, s, r, notifying("fast-cnp"))
			n.run(second)
			got := n.ends[0].Report()
			if got.Notifications.Refused[c.refused] == 0 || (c.accepted == "") != (len(got.Notifications.Accepted) == 0) || c.accepted != "" && got.Notifications.Accepted[c.accepted] == 0 {
				t.Errorf("notifications are %+v, expected %q and %q", got.Notifications, c.accepted, c.refused)
			}
			if slowed := got.QPs[0].RateBps < 300e6; slowed != (c.accepted != "") {
				t.Errorf("the rate is %g bit/s", got.QPs[0].RateBps)
			}
			n.close()
		})
	}
}

// TestVerbs: each verb moves data, at the offered rate if nothing is congested.
func TestVerbs(t *testing.T) {
	for verb, name := range map[endpoint.Op]string{endpoint.Write: "write", endpoint.Send: "send", endpoint.Read: "read"} {
		t.Run(name, func(t *testing.T) {
			s := sending()
			s.Verb, s.Load = verb, []Phase{{Rate: 80_000_000, Length: second}}
			r := answering(s)
			r.Load[0].Rate = 80_000_000
			n := newNetwork(t, s, r, "")
			n.run(2 * second)
			got := n.ends[0].Report()
			if got.GoodputBps < 70e6 || got.GoodputBps > 80e6 || got.Sent.Retransmitted != 0 || got.MessagesFailed != 0 {
				t.Errorf("%+v", got)
			}
			n.close()
		})
	}
}

// TestPhases: each phase of the load has its rate, and the sender has finished after the last.
func TestPhases(t *testing.T) {
	s := sending()
	s.Load = []Phase{{10_000_000, second / 2}, {90_000_000, second / 2}, {30_000_000, second / 2}}
	n := newNetwork(t, s, answering(s), "")
	before := uint64(0)
	for _, p := range s.Load {
		if n.ends[0].Finished() {
			t.Fatalf("finished at %d ns", n.now)
		}
		n.run(p.Length)
		r := n.ends[0].Report()
		frames := float64(endpoint.EthernetOverhead) * float64(r.Sent.Packets)
		bits := 8 * (float64(r.Sent.Bytes) + frames)
		if rate := (bits - float64(before)) / 0.5; rate < 0.98*float64(p.Rate) || rate > 1.02*float64(p.Rate) {
			t.Errorf("%g bit/s are sent, expected %d", rate, p.Rate)
		}
		before = uint64(bits)
	}
	n.run(second)
	if end := n.now - epoch; end > 3*second/2+tick {
		t.Errorf("the sender goes on until %d ns", end)
	}
	n.close()
}

// TestNobodyAnswers: without a receiver, a sender's QPs fail, and Err reports it.
func TestNobodyAnswers(t *testing.T) {
	s := sending()
	s.Load, s.Timeout, s.PSN = []Phase{{Rate: 10_000_000}}, second/100, 0
	r := answering(s)
	r.FirstQP = 0x900
	n := newNetwork(t, s, r, "")
	n.run(second)
	got := n.ends[0].Report()
	err := n.ends[0].Err()
	if !n.ends[0].Finished() || err == nil || !strings.Contains(err.Error(), "all QPs (4) failed: fd00:18::1 acknowledged nothing in 32 timeouts") {
		t.Errorf("after %v s: %v", got.Seconds, err)
	}
	if n.ends[1].Report().Received.Ignored["before-the-peer"] == 0 || !got.QPs[3].Failed {
		t.Errorf("%+v", got)
	}
	n.close()
}

// TestSilence: if the receiver has answered before, Err doesn't blame its address.
func TestSilence(t *testing.T) {
	s := sending()
	s.Timeout = second / 100
	n := newNetwork(t, s, answering(s), "")
	n.toSender = func([]byte) bool { return n.now-epoch < second/10 }
	n.run(2 * second)
	err := n.ends[0].Err()
	if err == nil || strings.Contains(err.Error(), "MAC address") || !strings.Contains(err.Error(), "MB, and then nothing for several times the timeout of 10 ms") {
		t.Error(err)
	}
	n.close()
}

// TestLearnPeer: an answering endpoint takes the first sender as its peer, unless another one is configured, and ignores packets with a
// wrong ICRC.
func TestLearnPeer(t *testing.T) {
	frames := []string{}
	b := newBackend(t, 1, 256, func(s inmem.Sent) { frames = append(frames, string(s.Octets)) })
	b.SetTime(epoch)
	sender, err := New(sending(), b)
	if err != nil {
		t.Fatal(err)
	}
	for now := int64(epoch); len(frames) < 4*ackEvery; now += tick { // 4 QPs
		b.SetTime(now)
		sender.Step()
	}
	for _, c := range []struct {
		name   string
		change func(frame []byte)
		peer   netip.Addr
		meets  bool
	}{
		{"as sent", func([]byte) {}, netip.Addr{}, true},
		{"the peer", func([]byte) {}, senderAddr, true},
		{"not the peer", func([]byte) {}, netip.MustParseAddr("fd00:18::3"), false},
		{"a wrong ICRC", func(f []byte) { f[len(f)-1] ^= 1 }, netip.Addr{}, false},
		{"to another address", func(f []byte) { f[14+39] ^= 1 }, netip.Addr{}, false},
		{"no RoCEv2", func(f []byte) { f[12] = 8 }, netip.Addr{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := 0
			own := newBackend(t, 1, 256, func(inmem.Sent) { answers++ })
			own.SetTime(epoch)
			config := answering(sending())
			config.Peer = c.peer
			r, err := New(config, own)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range frames {
				f := []byte(text)
				c.change(f)
				own.Inject(0, f, uint32(len(f)))
			}
			for now := int64(epoch); now < 2*epoch; now += second / 100 {
				own.SetTime(now)
				r.Step()
			}
			s := r.Report()
			if met := s.Received.InSequence > 0; met != c.meets || answers > 0 != c.meets || (s.Received.Ignored["before-the-peer"] == uint64(len(frames))) != !c.meets {
				t.Errorf("meets the sender: %t, ignored %v", met, s.Received.Ignored)
			}
		})
	}
}

// TestLateCaller: a Runner that isn't stepped for long catches up by mostLate only, and sends no more at a time than the device accepts.
func TestLateCaller(t *testing.T) {
	sent := 0
	b := newBackend(t, 1, 256, func(s inmem.Sent) { sent += len(s.Octets) + endpoint.EthernetOverhead })
	b.SetTime(epoch)
	s := sending()
	s.Load[0].Length = 10 * second
	r, err := New(s, b)
	if err != nil {
		t.Fatal(err)
	}
	r.Step() // the first frame
	sent = 0
	b.SetTime(epoch + second)
	b.Limit(0, 3)
	r.Step()
	r.Step()
	three := sent
	b.Limit(0, 32)
	for range 20 {
		r.Step()
	}
	const most = mostLate * 300_000_000 / 8 / second // bytes
	if sent < most*9/10 || sent > most+2*4200 || three < 3*4096 || three > 3*4300 {
		t.Errorf("%d bytes sent after a second's absence, %d of them at first; expected %d and 3 frames", sent, three, most)
	}
	b.Lose(0, func(burst.Frame) (burst.Cause, bool) { return burst.LinkDown, true })
	b.SetTime(epoch + second + second/1000)
	r.Step()
	r.Step()
	if lost := r.Report().Sent.Lost["link-down"]; lost == 0 {
		t.Error("frames that the device dropped aren't reported")
	}
}

// TestStepDoesNotAllocate: neither end allocates once its queues have grown.
func TestStepDoesNotAllocate(t *testing.T) {
	s := sending(packet.LongHaulCNP)
	s.Load[0].Length = 100 * second
	n := newNetwork(t, s, answering(s), notifying("long-haul-cnp"))
	n.run(second)
	for i, r := range n.ends {
		if allocs := testing.AllocsPerRun(100, func() {
			n.now += tick
			n.backends[i].SetTime(n.now)
			r.Step()
		}); allocs != 0 {
			t.Errorf("end %d: %g allocations a step", i, allocs)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"no address of this end":          func(c *Config) { c.Addr = netip.Addr{} },
		"this end has no MAC address":     func(c *Config) { c.MAC = [6]byte{} },
		"no peer is given":                func(c *Config) { c.Peer = netip.Addr{} },
		"no MAC address of the peer":      func(c *Config) { c.PeerMAC = [6]byte{} },
		"different IP versions":           func(c *Config) { c.Peer = netip.MustParseAddr("10.0.0.1") },
		"0 QPs; expected":                 func(c *Config) { c.QPs = 0 },
		"4097 QPs; expected":              func(c *Config) { c.QPs = MaxQPs + 1 },
		"verb 9 is not known":             func(c *Config) { c.Verb = 9 },
		"messages of 0 bytes":             func(c *Config) { c.Message = 0 },
		"a window of 4095":                func(c *Config) { c.Window = 4095 },
		"no rate is given":                func(c *Config) { c.Load = nil },
		"phase 1 of the load has 0 bit/s": func(c *Config) { c.Load = []Phase{{Rate: 0}} },
		"phase 1 of the load has 5 bit/s": func(c *Config) { c.Load = []Phase{{Rate: 5}, {Rate: 5}} },
		"are to be accepted":              func(c *Config) { c.Accept = []packet.Notification{packet.PPFC, packet.LongHaulCNP} },
		"format pfc can't be accepted":    func(c *Config) { c.Accept = []packet.Notification{packet.LinkPFC} },
		"the first QPs are 0 at this end": func(c *Config) { c.FirstQP = 0 },
		"16777216 at the other":           func(c *Config) { c.PeerFirstQP = 1 << 24 },
		"buffers have 4352 bytes, expected 4353 or more for a path MTU of 4252": func(c *Config) { c.MTU = 4252 },
		"MTU is 10000 bytes, expected 1 to ":                                    func(c *Config) { c.MTU = 10000 },
	} {
		c, b := sending(), newBackend(t, 1, 256, nil)
		b.Inject(0, make([]byte, 64), 64)
		change(&c)
		if _, err := New(c, b); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v; expected %q", err, want)
		}
		if n := b.InUse() - b.Waiting(); n != 0 {
			t.Errorf("%d buffers are not given back after %q", n, want)
		}
	}
}
