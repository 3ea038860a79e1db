// Package runner runs a host of package endpoint on a burst.Backend. It opens the QPs, keeps them busy, moves frames between the host and
// the device's queue, and reports. `cnpgate endpoint` runs it on devices, tests run it in memory. Time comes from the backend: the package
// has no clock, starts no goroutine and never blocks.
package runner

import (
	"fmt"
	"math"

	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/cm"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/units"
)

const (
	second = 1_000_000_000
	never  = math.MaxInt64
	// mostLate is how far a Runner catches up if its caller is late, ns. Frames due before that are not sent: together they would be a
	// burst that the host's NIC could never send.
	mostLate = 2_000_000
	// mostFarewell is how long a Runner tries to end its connections, ns. If the device sends, the connection manager gives up earlier.
	mostFarewell = 3 * second
	// mostSilence is how long a server of rping's exchange may take for a round, ns.
	mostSilence = 10 * second
	// mostHeaders is the most that a frame has besides its payload, in bytes: Ethernet 14, IPv6 40, UDP 8, BTH 12, RETH 16, immediate data
	// 4, ICRC 4, padding 3.
	mostHeaders = 101
)

// Runner is a running endpoint. It is for use by one goroutine.
type Runner struct {
	c       Config
	host    *endpoint.Host
	backend burst.Backend
	batch   *burst.Batch
	qps     []qpState // by index of the QP
	opened  bool

	stopped   bool
	stoppedAt int64
	peer      packet.Addr // of an answering endpoint: the peer, once it is known
	parsed    packet.Parsed

	begin    int64 // ns
	now      int64 // after the last Exchange
	reached  int64 // the latest time passed to the host
	phase    int
	phaseEnd int64
	paceAt   int64 // when the phase's rate allows the next frame

	refused  [burst.Causes]uint64 // frames that the device dropped
	unusable uint64               // received frames that couldn't be passed to the host
	early    uint64               // frames received before the peer was known
}

// qpState is a Runner's state of a QP.
type qpState struct {
	number, peer uint32 // QP numbers, here and at the other end
	acknowledged uint64 // bytes of acknowledged messages
	failed       bool
	outcome      cm.Outcome // of a failed connection
	reason       uint16     // of the REJ
	again        bool       // the connection is requested a second time
	cause        error      // why it failed, if the peer's answers show it
	answeredAt   int64      // with Config.Ping: when the connection came up, or the last round ended, ns; 0: it isn't up
}

// New makes an endpoint on a backend with one port. Its time begins with the backend's first Exchange.
func New(c Config, backend burst.Backend) (*Runner, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.MAC == [6]byte{} {
		return nil, fmt.Errorf("this end has no MAC address: none is given, and the device has none; expected one such as 02:00:00:00:00:01")
	}
	config, err := c.host()
	if err != nil {
		return nil, err
	}
	r := &Runner{c: c, backend: backend, batch: backend.Batch(), qps: make([]qpState, c.QPs)}
	config.Completed = r.completed
	for i := range r.qps {
		r.qps[i].number, r.qps[i].peer = c.FirstQP+uint32(i), c.PeerFirstQP+uint32(i)
	}
	if c.CMPort != 0 {
		clear(r.qps) // RDMA-CM assigns their numbers
		config.CM.Accept, config.CM.Changed = r.accept, r.changed
	}
	if r.host, err = endpoint.New(config); err != nil {
		return nil, err
	}
	if c.Peer.IsValid() {
		r.peer = packet.AddrFrom(c.Peer)
	}
	r.now = backend.Exchange()
	r.begin, r.reached, r.paceAt = r.now, r.now, r.now
	r.phaseEnd = r.endOfPhase(r.begin)
	err = r.checkBuffers()
	switch {
	case err != nil:
	case c.CMPort != 0:
		r.opened = true
		for id := 0; c.Send && err == nil && id < len(r.qps); id++ {
			err = r.dial(uint64(id))
		}
	case c.Send:
		err = r.open(endpoint.Peer{Addr: r.peer, MAC: c.PeerMAC})
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	r.handle()
	return r, nil
}

// checkBuffers refuses buffers that are too small for a packet.
func (r *Runner) checkBuffers() error {
	need := uint32(r.c.MTU) + mostHeaders
	for _, f := range r.batch.Spare {
		if f.Head < need {
			return fmt.Errorf("the device's buffers have %d bytes, expected %d or more for a path MTU of %d", f.Head, need, r.c.MTU)
		}
	}
	return nil
}

// open opens the QPs. A sender's QPs send messages without end.
func (r *Runner) open(peer endpoint.Peer) error {
	for i := range uint32(r.c.QPs) {
		psn := (r.c.PSN + i*PSNStep) & packet.PSNMask
		peer.QP = r.qps[i].peer
		if err := r.host.Open(endpoint.QP{Number: r.qps[i].number, Peer: peer, SendPSN: psn, ReceivePSN: psn}); err != nil {
			return err
		}
		if !r.c.Send {
			continue
		}
		if err := r.start(r.now, int(i)); err != nil {
			return err
		}
	}
	r.opened = true
	return nil
}

// start makes a QP send messages without end.
func (r *Runner) start(now int64, i int) error {
	if r.c.Ping {
		r.qps[i].answeredAt = now
		return r.host.Ping(now, r.qps[i].number, r.c.Message, uint64(i))
	}
	return r.host.Start(endpoint.Stream{QP: r.qps[i].number, Op: r.c.Verb, Bytes: r.c.Message, Messages: math.MaxInt, At: now, ID: uint64(i)})
}

// completed handles the end of a message.
func (r *Runner) completed(m endpoint.Completion) {
	q := &r.qps[m.ID]
	if m.Failed {
		q.failed, q.cause = true, r.causeOf(q)
		return
	}
	q.answeredAt = m.Done
	q.acknowledged += uint64(m.Bytes)
}

// Now is the backend's time at the last Step, ns.
func (r *Runner) Now() int64 { return r.now }

// Step exchanges frames with the device once, and makes the host do what is due. It returns the number of frames moved.
func (r *Runner) Step() int {
	p := &r.batch.Ports[0]
	r.now = r.backend.Exchange()
	moved := p.Sent + len(p.Rx)
	r.handle()
	return moved
}

// handle processes what the last exchange received, and prepares the next exchange.
func (r *Runner) handle() {
	p := &r.batch.Ports[0]
	for _, l := range p.Lost {
		r.refused[l.Cause]++
	}
	p.Tx = p.Tx[:copy(p.Tx, p.Tx[p.Sent:])]
	r.unusable += p.Unusable.Frames + p.Unfinished.Frames
	r.enterPhase()
	r.endSilent()
	if r.over() {
		r.Stop()
	}
	r.transmit(p)
	for _, f := range p.Rx {
		r.receive(f)
	}
	p.Rx = p.Rx[:0]
	r.transmit(p)
}

// receive passes a frame to the host.
func (r *Runner) receive(f burst.Frame) {
	b := r.batch.Bytes(f)
	if r.opened || r.learnPeer(b, f.Len) {
		r.host.Receive(r.now, b, int(f.Len))
	} else {
		r.early++
	}
	if r.c.Probe != nil {
		r.c.Probe.Received(r.now, r.host, b, int(f.Len))
	}
	r.batch.Free = append(r.batch.Free, f.Buf)
}

// learnPeer opens the QPs of an answering endpoint when the first packet for one of them arrives. Its source becomes the peer.
func (r *Runner) learnPeer(b []byte, length uint32) bool {
	p := &r.parsed
	packet.Parse(b, length, p)
	first := r.c.FirstQP
	if p.Kind != packet.RoCEv2 || p.Encapsulated() || p.Opcode.Transport() != "RC" || p.Dst != packet.AddrFrom(r.c.Addr) || p.DestQP-first >= uint32(r.c.QPs) ||
		r.c.Peer.IsValid() && p.Src != r.peer || !packet.VerifyICRC(b, p) {
		return false
	}
	r.peer = p.Src
	return r.open(endpoint.Peer{Addr: p.Src, MAC: [6]byte(b[6:12])}) == nil
}

// transmit has the host write the frames that are due into spare buffers, each with the time at which it was due.
func (r *Runner) transmit(p *burst.Port) {
	r.probe(p)
	for len(p.Tx) < cap(p.Tx) && len(r.batch.Spare) > 0 {
		at, any := r.due()
		if !any || at > r.now {
			return
		}
		r.reached = at
		last := len(r.batch.Spare) - 1
		f := r.batch.Spare[last]
		_, length := r.host.Next(at, r.batch.Bytes(f))
		if length == 0 {
			r.reached = at + 1 // only a timer has expired: time must advance past it
			continue
		}
		r.batch.Spare = r.batch.Spare[:last]
		f.Len = uint32(length)
		p.Tx = append(p.Tx, f)
		r.pace(at, length)
	}
}

// probe sends the probe's frames that are due.
func (r *Runner) probe(p *burst.Port) {
	for r.c.Probe != nil && !r.stopped && len(p.Tx) < cap(p.Tx) && len(r.batch.Spare) > 0 {
		at, any := r.c.Probe.Due()
		if !any || at > r.now {
			return
		}
		last := len(r.batch.Spare) - 1
		f := r.batch.Spare[last]
		length := r.c.Probe.Next(r.now, r.batch.Bytes(f))
		if length == 0 {
			if next, any := r.c.Probe.Due(); any && next <= at {
				return // it waits for the next exchange
			}
			continue
		}
		r.batch.Spare = r.batch.Spare[:last]
		f.Len = uint32(length)
		p.Tx = append(p.Tx, f)
	}
}

// due is when to ask the host next: at most mostLate ago, and never before the last time.
func (r *Runner) due() (at int64, any bool) {
	at, any = r.host.Due()
	if !any || r.Finished() {
		return 0, false
	}
	return max(at, r.paceAt, r.reached, r.now-mostLate), true
}

// pace limits the rate to that of the phase, if that is below the line rate.
func (r *Runner) pace(at int64, length int) {
	const bits = 8
	r.paceAt = at + int64(length+endpoint.EthernetOverhead)*bits*second/r.c.Load[r.phase].Rate
}

// enterPhase moves on to the current phase of the load.
func (r *Runner) enterPhase() {
	for r.now >= r.phaseEnd && r.phase < len(r.c.Load)-1 {
		r.phase++
		r.phaseEnd = r.endOfPhase(r.phaseEnd)
	}
}

// endOfPhase returns when the current phase ends, if it began at begin.
func (r *Runner) endOfPhase(begin int64) int64 {
	if length := r.c.Load[r.phase].Length; length > 0 {
		return begin + length
	}
	return never
}

// NextDue returns when Step has something to do even if no frame arrives, ns. It returns false if there is nothing to do.
func (r *Runner) NextDue() (at int64, any bool) {
	if len(r.batch.Ports[0].Tx) > 0 {
		return r.now, true
	}
	at, any = r.due()
	if r.c.Probe != nil && !r.stopped {
		if t, more := r.c.Probe.Due(); more && (!any || t < at) {
			at, any = t, true
		}
	}
	return at, any
}

// over reports whether the load has ended, or all QPs have failed.
func (r *Runner) over() bool {
	return r.phase == len(r.c.Load)-1 && r.now >= r.phaseEnd || r.failed() == len(r.qps) || r.c.Probe != nil && r.c.Probe.Done()
}

// Stop ends the load, and ends the connections of RDMA-CM by DREQ. The Runner has finished when these are answered or time out.
func (r *Runner) Stop() {
	if !r.stopped {
		r.stopped, r.stoppedAt = true, r.now
		r.host.DisconnectAll(r.now)
	}
}

// Finished reports whether the endpoint has nothing more to do.
func (r *Runner) Finished() bool {
	switch {
	case !r.stopped:
		return false
	case r.c.CMPort == 0:
		return true
	}
	sent := r.host.Disconnected() && len(r.batch.Ports[0].Tx) == 0
	return sent || r.now-r.stoppedAt > mostFarewell
}

// failed is the number of QPs that failed.
func (r *Runner) failed() (n int) {
	for i := range r.qps {
		if r.qps[i].failed {
			n++
		}
	}
	return n
}

// Err returns an error if all QPs of a sender have failed.
func (r *Runner) Err() error {
	if r.failed() < len(r.qps) {
		return nil
	}
	if cause := r.qps[0].cause; cause != nil {
		return fmt.Errorf("all QPs (%d) failed: %v %w", len(r.qps), r.c.Peer, cause)
	}
	if r.c.CMPort != 0 {
		if err := r.cmError(); err != nil {
			return err
		}
	}
	slowest, acknowledged := r.reportQP(0).RateBps, uint64(0)
	for i := range r.qps {
		q := r.reportQP(i)
		slowest, acknowledged = min(slowest, q.RateBps), acknowledged+q.Bytes
	}
	if acknowledged > 0 {
		return fmt.Errorf("all QPs (%d) failed: %v acknowledged %s, and then nothing for several times the timeout of %g ms, or refused a request, while notifications allowed them %s and more; "+
			"if the path still works, its queues delay packets by more than the timeout: expected a longer one, or a lower rate",
			len(r.qps), r.c.Peer, units.Size(acknowledged), float64(r.c.Timeout)/1e6, units.Rate(slowest))
	}
	return fmt.Errorf("all QPs (%d) failed: %v acknowledged nothing in %d timeouts, or refused a request, while notifications allowed them %s and more; check that the receiver runs "+
		"with the same QPs and starting PSN, and that the sender has its MAC address", len(r.qps), r.c.Peer, r.host.Counters().TimedOut, units.Rate(slowest))
}

// Close returns all buffers. Step must not be called afterwards.
func (r *Runner) Close() {
	p := &r.batch.Ports[0]
	for _, frames := range [][]burst.Frame{p.Tx, p.Rx, r.batch.Spare} {
		for _, f := range frames {
			r.batch.Free = append(r.batch.Free, f.Buf)
		}
	}
	p.Tx, p.Rx, r.batch.Spare = p.Tx[:0], p.Rx[:0], r.batch.Spare[:0]
	r.batch.Drain = true
	r.backend.Exchange()
}
