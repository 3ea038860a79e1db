package nictest

import (
	"fmt"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/ring"
)

const overhead = endpoint.EthernetOverhead

// Simulation describes a sender in virtual time.
type Simulation struct {
	Sender   endpoint.Config                  // its address, line rate, MTU and reaction point
	Peer     packet.Addr                      // the measuring host's address
	Delay    int64                            // one way, ns
	Progress func(s *Session, now int64) bool // called now and then; false ends the session
}

// frame is a frame under way.
type frame struct {
	at     int64
	n, len int
	data   [simulatedFrame]byte
}

// simulatedFrame is enough for the headers of data, and for a notification.
const simulatedFrame = 256

// Simulate measures a simulated sender, which writes without end to the measuring host.
func Simulate(c Config, sim Simulation) (*Result, error) {
	s, err := simulate(c, sim)
	if err != nil {
		return nil, err
	}
	return s.Result(), nil
}

func simulate(c Config, sim Simulation) (*Session, error) {
	w, err := newWorld(c, sim)
	if err != nil {
		return nil, err
	}
	for i := 0; !w.session.Done(); i++ {
		if i%65536 == 0 && sim.Progress != nil && !sim.Progress(w.session, w.now) {
			break
		}
		if err := w.step(); err != nil {
			return nil, err
		}
	}
	return w.session, nil
}

// world is a sender, the measuring host and a session, with links between.
type world struct {
	now          int64
	delay        int64
	sender, peer *endpoint.Host
	session      *Session
	toPeer       ring.Ring[frame]
	toSender     ring.Ring[frame]
	out          [endpoint.MaxFrame]byte
}

func newWorld(c Config, sim Simulation) (*world, error) {
	s := sim.Sender
	// A sender at its least rate takes long for a message; it must not retransmit meanwhile.
	s.MAC, s.Overhead, s.Timeout, s.AckEvery = [6]byte{2, 0, 0, 0, 0, 2}, overhead, 60*second, 64
	s.Reaction.Trusted = trusted(c.Addresses)
	w := &world{delay: sim.Delay}
	var err error
	if w.sender, err = endpoint.New(s); err != nil {
		return nil, err
	}
	p := endpoint.Config{Addr: sim.Peer, MAC: [6]byte{2, 0, 0, 0, 0, 1}, LineRate: s.LineRate, MTU: s.MTU, Overhead: overhead, AckEvery: s.AckEvery, NoCNP: true}
	if w.peer, err = endpoint.New(p); err != nil {
		return nil, err
	}
	at, from, err := endpoint.Connect(w.sender, w.peer, [2]uint32{1, 1})
	if err != nil {
		return nil, err
	}
	if err := w.sender.Start(endpoint.Stream{QP: at, Op: endpoint.Write, Bytes: 1 << 20, Messages: 1 << 40}); err != nil {
		return nil, err
	}
	port := packet.SourcePort(at, from)
	w.session, err = NewSession(0, c, Sender{Addr: s.Addr, Peer: sim.Peer, MAC: s.MAC, FromMAC: p.MAC, QP: at, PeerQP: from, SrcPort: port})
	return w, err
}

// step goes on to the next event.
func (w *world) step() error {
	at, next := int64(1<<62), 0
	consider := func(t int64, some bool, what int) {
		if some && t < at {
			at, next = t, what
		}
	}
	const senders, peers, sessions, arrivals, notified = 1, 2, 3, 4, 5
	t, some := w.sender.Due()
	consider(t, some, senders)
	t, some = w.peer.Due()
	consider(t, some, peers)
	t, some = w.session.Due()
	consider(t, some, sessions)
	if w.toPeer.Len() > 0 {
		consider(w.toPeer.At(0).at, true, arrivals)
	}
	if w.toSender.Len() > 0 {
		consider(w.toSender.At(0).at, true, notified)
	}
	w.now = max(w.now, at)
	switch next {
	case senders:
		n, length := w.sender.Next(w.now, w.out[:])
		w.send(&w.toPeer, n, length)
	case peers:
		n, length := w.peer.Next(w.now, w.out[:])
		w.send(&w.toSender, n, length)
	case sessions:
		n := w.session.Next(w.now, w.out[:])
		w.send(&w.toSender, n, n)
	case arrivals:
		f := w.toPeer.Pop()
		w.peer.Receive(w.now, f.data[:f.n], f.len)
		if f.len > leastData {
			w.session.Data(w.now, f.len)
		}
	case notified:
		f := w.toSender.Pop()
		w.sender.Receive(w.now, f.data[:f.n], f.len)
	default:
		return fmt.Errorf("nictest: the simulated sender stopped at %d ns", w.now)
	}
	return nil
}

// leastData is what a data frame of a simulation is longer than, and an acknowledgement isn't, bytes.
const leastData = 200

func (w *world) send(to *ring.Ring[frame], n, length int) {
	if length == 0 {
		return
	}
	f := frame{at: w.now + w.delay, n: n, len: length}
	copy(f.data[:], w.out[:n])
	to.Push(f)
}
