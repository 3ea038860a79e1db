package endpoint

import (
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// network carries frames between hosts in virtual time. Each frame arrives delay after it started, unless change drops it, or later if it
// has to wait for a bottleneck.
type network struct {
	t     tester
	now   int64
	delay int64
	hosts []*Host
	sent  [][]transit // by destination, in order of arrival
	// change may alter a frame, or drop it by returning false.
	change func(now int64, from int, frame []byte, length int) bool
	seen   func(now int64, from int, frame []byte, length int)
	narrow *bottleneck
	buf    [MaxFrame]byte
}

// tester is what a network needs of a *testing.T, a *testing.B or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
}

type transit struct {
	at     int64
	frame  []byte
	length int
}

// bottleneck is a link towards a host that all frames to it queue for.
type bottleneck struct {
	to      int
	rate    int64  // bit/s
	freeAt  int64  // when all that waits is sent, ns
	sent    uint64 // bytes
	highest int64  // queue, bytes
	jitter  int64  // frames are late by up to this, ns: without, two flows can lock their packets in step
	random  uint64
	// pass sees each frame and the queue that it finds, in bytes, before it joins.
	pass func(now int64, frame []byte, length int, queue int64)
}

// join queues a frame that arrives at a time, and returns when it has been sent.
func (b *bottleneck) join(at int64, frame []byte, length int) int64 {
	queue := max(0, b.freeAt-at) * b.rate / (8 * second)
	b.highest = max(b.highest, queue)
	b.sent += uint64(length)
	if b.pass != nil {
		b.pass(at, frame, length, queue)
	}
	b.freeAt = max(b.freeAt, at) + int64(length)*8*second/b.rate
	return b.freeAt
}

const gigabit = 1_000_000_000

// address is that of the i-th host.
func address(i int) packet.Addr {
	return packet.AddrFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
}

// newNetwork makes two hosts of the same kind.
func newNetwork(t tester, c Config, delay int64) *network {
	t.Helper()
	return newNetworkOf(t, 2, c, delay)
}

// newNetworkOf makes hosts of the same kind.
func newNetworkOf(t tester, hosts int, c Config, delay int64) *network {
	t.Helper()
	n := &network{t: t, delay: delay, sent: make([][]transit, hosts)}
	for i := range hosts {
		c := c
		if c.Addr == (packet.Addr{}) {
			c.Addr = address(i)
		} else {
			c.Addr.Lo += uint64(i)
		}
		c.MAC[5] = byte(1 + i)
		setDefault(&c.LineRate, 100*gigabit)
		h, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		n.hosts = append(n.hosts, h)
	}
	return n
}

// connect opens a QP pair between the first two hosts.
func (n *network) connect(psn ...uint32) (a, b uint32) {
	n.t.Helper()
	return n.connectTo(0, 1, psn...)
}

func (n *network) connectTo(from, to int, psn ...uint32) (a, b uint32) {
	n.t.Helper()
	var start [2]uint32
	copy(start[:], psn)
	a, b, err := Connect(n.hosts[from], n.hosts[to], start)
	if err != nil {
		n.t.Fatal(err)
	}
	return a, b
}

func (n *network) start(host int, s Stream) {
	n.t.Helper()
	if err := n.hosts[host].Start(s); err != nil {
		n.t.Fatal(err)
	}
}

// run goes on until nothing is left to do, or until a time.
func (n *network) run(until int64) {
	n.t.Helper()
	for steps := 0; ; steps++ {
		if steps > 50_000_000 {
			n.t.Fatal("the network doesn't come to rest")
		}
		at := never
		for i, h := range n.hosts {
			if len(n.sent[i]) > 0 {
				at = min(at, n.sent[i][0].at)
			}
			if due, ok := h.Due(); ok {
				at = min(at, due)
			}
		}
		if at == never || at > until {
			if until != never {
				n.now = until
			}
			return
		}
		n.now = max(n.now, at)
		n.step()
	}
}

// step hands over what has arrived, and takes what may be sent.
func (n *network) step() {
	for i, h := range n.hosts {
		for len(n.sent[i]) > 0 && n.sent[i][0].at <= n.now {
			f := n.sent[i][0]
			n.sent[i] = n.sent[i][1:]
			h.Receive(n.now, f.frame, f.length)
		}
		for {
			size, length := h.Next(n.now, n.buf[:])
			if length == 0 {
				break
			}
			frame := append([]byte(nil), n.buf[:size]...)
			if n.seen != nil {
				n.seen(n.now, i, frame, length)
			}
			if n.change == nil || n.change(n.now, i, frame, length) {
				n.deliver(frame, length)
			}
		}
	}
}

// deliver has a frame arrive at the host that it is for.
func (n *network) deliver(frame []byte, length int) {
	to, at := int(frame[5])-1, n.now+n.delay
	if b := n.narrow; b != nil && b.to == to {
		b.random = b.random*6364136223846793005 + 1442695040888963407
		at = b.join(at+int64(b.random>>40)%(b.jitter+1), frame, length)
	}
	n.sent[to] = append(n.sent[to], transit{at, frame, length})
}
