package rdmanet

// Trigger is what made a requester send again.
type Trigger uint8

// Triggers.
const (
	Asked       Trigger = iota // a NAK for a PSN sequence error
	NotReadyNAK                // an RNR NAK
	Implied                    // a READ or ATOMIC response beyond one that was missing
	TimedOut
)

// Reason is why that happened.
type Reason uint8

// Reasons.
const (
	Unexplained Reason = iota
	DataBefore         // data, or a request for it, was lost before it came to the capture
	DataBehind         // or behind it
	AckBefore          // an ACK was lost
	AckBehind
	TooShort  // nothing was: the time-out was shorter than the answer took
	Reordered // the packet was overtaken
	NotReady
	Dead // the peer
)

func (r Reason) String() string {
	return [...]string{
		"unexplained", "data lost before", "data lost behind", "ACK lost before", "ACK lost behind", "time-out too short", "overtaken", "receiver not ready", "peer down",
	}[r%9]
}

// Episode is a time when a requester went back.
type Episode struct {
	Half    *Half
	Trigger Trigger
	Seq     int64
	At      int64
	By      *Packet // the NAK or response; nil: a time-out

	reason Reason
	about  *Packet // the packet that was lost
	known  bool
}

// Cause is the episode's cause by the names of the diagnosis.
func (e *Episode) Cause() string {
	switch e.Trigger {
	case Asked:
		return "nak-sequence-error"
	case NotReadyNAK:
		return "rnr-nak"
	case Implied:
		return "implied-nak"
	}
	if e.Reason() == TooShort {
		return "spurious"
	}
	return "time-out"
}

// Reason is why the episode began. All must have run.
func (e *Episode) Reason() Reason {
	if !e.known {
		e.reason, e.about = e.find()
		e.known = true
	}
	return e.reason
}

// About is the packet that was lost; nil: none was.
func (e *Episode) About() *Packet {
	e.Reason()
	return e.about
}

func (e *Episode) find() (Reason, *Packet) {
	reason, about := e.search()
	if reason != Reordered || e.Half.Conn.Path.overtakes() {
		return reason, about
	}
	// It came while an earlier one was missing, and was dropped because of that.
	for i, o := range e.Half.Episodes {
		if o == e && i > 0 {
			return e.Half.Episodes[i-1].Reason(), e.Half.Episodes[i-1].About()
		}
	}
	return Unexplained, nil
}

// overtakes reports whether packets overtake others on a path.
func (p *Path) overtakes() bool {
	for _, side := range p.Segments {
		if side[0].Late != nil || side[1].Late != nil {
			return true
		}
	}
	return false
}

func (e *Episode) search() (Reason, *Packet) {
	h := e.Half
	switch e.Trigger {
	case NotReadyNAK:
		return NotReady, nil
	case Asked:
		return e.ofData(h.latest(Request, e.Seq, e.By.Trigger.Sent))
	case Implied:
		if p := h.latest(Response, e.Seq, e.By.Sent); p != nil {
			return e.ofData(p)
		}
		return e.ofData(h.latest(Request, e.Seq, e.By.Sent))
	}
	return e.ofTimeOut()
}

// ofData is the reason if a packet is missing.
func (e *Episode) ofData(p *Packet) (Reason, *Packet) {
	switch {
	case p == nil:
		return Unexplained, nil
	case p.Fate == LostBefore, p.Fate == CorruptedBefore:
		return DataBefore, p
	case p.Fate == LostBehind, p.Fate == CorruptedBehind:
		return DataBehind, p
	case p.Fate == Ignored:
		return Dead, p
	}
	return Reordered, p
}

// ofTimeOut finds what became of the answers to what was sent before, and if there were none, of the requests.
func (e *Episode) ofTimeOut() (Reason, *Packet) {
	h := e.Half
	var lost *Packet
	refused, late := false, false
	for _, p := range h.sent {
		if p.Kind != Response || p.Trigger.Sent >= e.At {
			continue
		}
		covers := p.Acked > e.Seq
		if h.requests[h.index(e.Seq)].answered() {
			covers = p.data() && p.Seq == e.Seq
		}
		if p.rnr() && p.Seq == e.Seq && p.Arrived > e.At {
			refused = true
		}
		switch {
		case !covers:
		case p.Fate == Delivered && p.Arrived >= e.At:
			return TooShort, nil
		case p.lost() && p.Sent < e.At:
			lost = p
		case p.lost():
			late = true
		}
	}
	switch {
	case lost == nil && late:
		return TooShort, nil
	case lost != nil && lost.data():
		return e.ofData(lost)
	case lost != nil && (lost.Fate == LostBefore || lost.Fate == CorruptedBefore):
		return AckBefore, lost
	case lost != nil:
		return AckBehind, lost
	case refused:
		return NotReady, nil
	}
	if p := h.latest(Request, e.Seq, e.At); p != nil && (p.lost() || p.Fate == Ignored) {
		return e.ofData(p)
	}
	for _, p := range h.sent { // its ACK was to be asked for by a later packet
		if p.Kind == Request && p.Seq > e.Seq && p.Sent < e.At && (p.lost() || p.Fate == Ignored) {
			return e.ofData(p)
		}
	}
	switch {
	case h.Conn.Host[h.End^1].Down != 0:
		return Dead, nil
	case h.Conn.Path.overtakes():
		return Reordered, nil // it came before an earlier one that was late, and was dropped because of that
	}
	return Unexplained, nil
}
