package runner

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// connecting is sending with RDMA-CM.
func connecting(accept ...packet.Notification) Config {
	s := sending(accept...)
	s.CMPort, s.Seed, s.PeerFirstQP, s.PSN = 7471, 1, 0, 0
	return s
}

// listening is answering with RDMA-CM.
func listening(s Config) Config {
	r := answering(s)
	r.FirstQP, r.Seed = 0x300, 2
	return r
}

// flows are the gateway's records of flows to QPs of connections.
func (n *network) flows() (all []dataplane.FlowRecord) {
	n.t.Helper()
	s := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, 64)}
	w := n.plane.Worker(0)
	if !w.Ask(s) {
		n.t.Fatal("the worker has been asked already")
	}
	for w.Asked(s) {
		n.now += tick
		n.time.SetTime(n.now)
		n.time.Step()
	}
	for _, f := range s.Flows {
		if f.Key.DestQP > packet.GSIQP {
			all = append(all, f)
		}
	}
	return all
}

// TestRDMACM: the ends agree on QPs and PSNs by RDMA-CM, through a gateway. The gateway confirms the source QP of each flow from that
// exchange, notifies the right QPs, and learns from DREQ that the flows have ended.
func TestRDMACM(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(kind packet.Notification) (sender Config, gateway string)
	}{{"IPv6", over6}, {"IPv4", over4}} {
		t.Run(c.name, func(t *testing.T) {
			s, settings := c.prepare(packet.LongHaulCNP)
			cm := connecting(packet.LongHaulCNP)
			s.CMPort, s.Seed, s.PeerFirstQP, s.PSN = cm.CMPort, cm.Seed, 0, 0
			n := newNetwork(t, s, listening(s), settings)
			n.run(second / 2)
			open := n.flows()
			sender := netip.Addr(s.Addr)
			toReceiver := 0
			for _, f := range open {
				qp, from := f.View.SourceQP(), f.Key.Src.Netip()
				if f.View.State() != pairing.Confirmed || f.View.Evidence() != pairing.EvidenceCM || f.Ended != pairing.Open {
					t.Errorf("the flow from %v to QP %#x is %v, ended %v; expected it to be confirmed by RDMA-CM", from, f.Key.DestQP, f.View, f.Ended)
				}
				if from == sender {
					toReceiver++
					if qp-s.FirstQP != f.Key.DestQP-0x300 { // both ends count upwards
						t.Errorf("the flow to QP %#x comes from QP %#x", f.Key.DestQP, qp)
					}
				}
			}
			if toReceiver != s.QPs || len(open) != 2*s.QPs {
				t.Errorf("%d flows, %d of them to the receiver; expected %d and %d", len(open), toReceiver, 2*s.QPs, s.QPs)
			}
			n.run(2 * second)
			r, got := n.ends[0].Report(), n.ends[1].Report()
			if !n.ends[0].Finished() || n.ends[0].Err() != nil || r.GoodputBps < 0.9*wanRate || r.CM.Established != 4 || r.CM.Ended["closed"] != 4 ||
				r.CM.Sent != 12 || r.CM.Repeated != 0 || r.CM.Received["taken"] != 8 || len(r.QPs) != 4 || r.QPs[3].QP != 0x103 || r.QPs[3].PeerQP != 0x303 {
				t.Errorf("finished %v, %v, %+v, %+v", n.ends[0].Finished(), n.ends[0].Err(), r.CM, r)
			}
			if len(r.Notifications.Accepted) == 0 || len(r.Notifications.Refused) != 0 {
				t.Errorf("notifications are %+v, expected some to be accepted and none refused", r.Notifications)
			}
			if got.CM.Established != 4 || got.CM.Ended["closed"] != 4 || got.Received.OutOfSequence != 0 || got.Peer != s.Addr.String() || n.ends[1].Finished() {
				t.Errorf("the receiver reports %+v, %+v", got.CM, got)
			}
			for _, f := range n.flows() {
				if f.Ended != pairing.EndedDREQ {
					t.Errorf("the flow to QP %#x has ended by %v, expected by DREQ", f.Key.DestQP, f.Ended)
				}
			}
			n.close()
		})
	}
}

// TestNextSender: a receiver serves one sender after the other. It refuses a sender other than its configured peer, and connections beyond
// its QPs.
func TestNextSender(t *testing.T) {
	s := connecting()
	s.Load = []Phase{{Rate: 50_000_000, Length: second / 10}}
	n := newNetwork(t, s, listening(s), "")
	for i := range 3 {
		n.run(second)
		if r := n.ends[0].Report(); !n.ends[0].Finished() || r.CM.Ended["closed"] != 4 || r.Messages == 0 {
			t.Errorf("sender %d: %+v", i, r)
		}
		n.ends[0].Close()
		s.Seed = uint64(10 + i)
		n.begin(0, s)
	}
	n.run(second)
	if got := n.ends[1].Report(); got.CM.Established != 16 || got.CM.Ended["closed"] != 16 {
		t.Errorf("the receiver reports %+v", got.CM)
	}
	n.close()
}

// TestNoConnection: a sender that gets no connection, or loses all of them, ends with an error.
func TestNoConnection(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(sender, receiver *Config)
		want   string
	}{
		{"another port", func(_, r *Config) { r.CMPort++ }, "fd00:18::1 refused the 4 connections: nobody listens at this port (reason 8)"},
		{"another path MTU", func(_, r *Config) { r.MTU = 1024 }, "it has another path MTU (reason 26)"},
		{"another peer", func(_, r *Config) { r.Peer = netip.MustParseAddr("fd00:18::77") }, "it doesn't accept this peer (reason 28)"},
		{"too few QPs", func(_, r *Config) { r.QPs = 3 }, ""}, // three of the four connections come up
		{"no RDMA-CM", func(_, r *Config) { r.CMPort = 0 }, "fd00:18::1 answered none of the requests for 4 connections"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := connecting()
			r := listening(s)
			c.change(&s, &r)
			n := newNetwork(t, s, r, "")
			n.run(5 * second)
			err := n.ends[0].Err()
			if !n.ends[0].Finished() || (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("finished %v: %v, expected %q", n.ends[0].Finished(), err, c.want)
			}
			if got := n.ends[0].Report(); c.want == "" && (got.CM.Established != 3 || got.CM.Ended["refused"] != 1 || !got.QPs[3].Failed) {
				t.Errorf("%+v, %+v", got.CM, got.QPs)
			}
			n.close()
		})
	}
}

// TestKilledSender: after a sender ended without DREQ, the next one gets connections from the same QPs to the same receiver.
func TestKilledSender(t *testing.T) {
	s := connecting()
	s.Load[0].Rate = 50_000_000
	r := listening(s)
	n := newNetwork(t, s, r, "")
	n.run(second / 10)
	s.Seed = 99
	n.ends[0].Close()
	n.begin(0, s)
	n.run(2 * second)
	got := n.ends[0].Report()
	if !n.ends[0].Finished() || n.ends[0].Err() != nil || got.CM.Established != 4 || got.CM.Ended["refused"] != 4 || got.CM.Ended["closed"] != 4 || got.Messages == 0 {
		t.Errorf("%v, %+v", n.ends[0].Err(), got.CM)
	}
	if got := n.ends[1].Report(); got.CM.Established != 8 || got.CM.Ended["closed"] != 8 || got.CM.Received["rejected"] != 4 {
		t.Errorf("the receiver reports %+v", got.CM)
	}
	n.close()
}

// TestReceiverStops: a receiver that is stopped ends its connections, and the sender reports it.
func TestReceiverStops(t *testing.T) {
	s := connecting()
	s.Verb = endpoint.Read
	n := newNetwork(t, s, listening(s), "")
	n.run(second / 10)
	n.ends[1].Stop()
	n.run(second)
	for range 10 { // for the last answers to arrive
		n.step()
	}
	err := n.ends[0].Err()
	if !n.ends[0].Finished() || !n.ends[1].Finished() || err == nil || err.Error() != "fd00:18::1 ended the 4 connections" {
		t.Errorf("finished: %v, %v; %v", n.ends[0].Finished(), n.ends[1].Finished(), err)
	}
	n.close()
}
