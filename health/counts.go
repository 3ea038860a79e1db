package health

// Cause is why a packet was sent again.
type Cause uint8

// Causes.
const (
	NAKSequence Cause = iota // the receiver asked for it
	RNR                      // the receiver was not ready
	Implied                  // a READ response was missing, and the requester asked again
	TimeOut                  // no answer came
	Spurious                 // the sender timed out, but the ACK was already on its way
	Unknown                  // answers can't be read
	Causes      = iota
)

func (c Cause) String() string {
	return [...]string{"nak-sequence-error", "rnr-nak", "implied-nak", "time-out", "spurious", "unknown"}[c%Causes]
}

// NAKCodes is the number of NAK codes that are counted (IBTA table 47).
const NAKCodes = 6

// NAKName is the name of a NAK code.
func NAKName(code int) string {
	return [...]string{"psn-sequence-error", "invalid-request", "remote-access-error", "remote-operational-error", "invalid-rd-request", "reserved"}[code]
}

// Amount is a number of packets, and their frames' bytes.
type Amount struct {
	Packets uint64 `json:"packets" doc:"Packets."`
	Bytes   uint64 `json:"bytes" doc:"Bytes of frames."`
}

func (a *Amount) add(bytes uint32) { a.Packets++; a.Bytes += uint64(bytes) }

func (a *Amount) plus(o Amount) { a.Packets += o.Packets; a.Bytes += o.Bytes }

func (a *Amount) minus(o Amount) {
	a.Packets -= min(a.Packets, o.Packets)
	a.Bytes -= min(a.Bytes, o.Bytes)
}

// Counts are what is counted of the requests of one end, and of the responses to them.
type Counts struct {
	Requests, Responses Amount
	Goodput             uint64 // bytes of payload that were sent for the first time, READ responses excluded
	ReadGoodput         uint64 // bytes of READ responses that were sent for the first time
	Retransmitted       [Causes]Amount
	Episodes            [Causes]uint64 // how often retransmission began
	LostUpstream        uint64         // requests and READ responses that were lost before they came here
	LostDownstream      uint64         // those that passed here, and were asked for again, or never acknowledged
	AcksLost            uint64         // ACKs that passed here, and did not reach the requester in time
	DroppedHere         [2]uint64      // requests, and responses, that the gateway dropped itself behind this place
	NotCaptured         uint64         // packets that never passed here, but were acknowledged
	EarlyAnswers        uint64         // requests that were recorded after their answer
	AgainRequests       Amount         // requests that were sent again, whatever the cause
	AgainResponses      Amount         // READ responses
	Perhaps             Amount         // requests that were sent again, unless they are of another connection of the same QPs, or came late behind the first one
	Duplicates          uint64
	OutOfOrder          uint64
	NAKs                [NAKCodes]uint64
	RNRNAKs             uint64
	CE                  uint64
	Messages            [Operations]uint64
	Sizes               Histogram // of messages, bytes
	RTT                 Histogram // from a request to its ACK, as measured here, ns
	ReadRTT             Histogram // from a READ request to the first response, ns
	notECT              uint64    // requests that can't be marked CE
	provenUp            uint64    // episodes that prove a loss before this place
	lostBack            uint64    // READ responses among LostDownstream
	lostAsked           uint64    // packets among LostDownstream that NAKs asked for
	discarded           uint64    // NAKs for what the responder had dropped behind a missing packet
	overtaken           uint64    // packets that NAKs asked for, though they came
	copies              uint64    // of Duplicates, those that are proven to be copies
}

// Retransmissions is the sum of all causes.
func (c *Counts) Retransmissions() (sum Amount) {
	for _, a := range c.Retransmitted {
		sum.plus(a)
	}
	return sum
}

// Add adds the counts of another half.
func (c *Counts) Add(o *Counts) {
	c.Requests.plus(o.Requests)
	c.Responses.plus(o.Responses)
	for i := range c.Retransmitted {
		c.Retransmitted[i].plus(o.Retransmitted[i])
		c.Episodes[i] += o.Episodes[i]
	}
	for _, p := range [...]struct {
		to   *uint64
		from uint64
	}{
		{&c.Goodput, o.Goodput}, {&c.ReadGoodput, o.ReadGoodput}, {&c.LostUpstream, o.LostUpstream}, {&c.LostDownstream, o.LostDownstream},
		{&c.AcksLost, o.AcksLost}, {&c.NotCaptured, o.NotCaptured}, {&c.Duplicates, o.Duplicates}, {&c.OutOfOrder, o.OutOfOrder},
		{&c.DroppedHere[0], o.DroppedHere[0]}, {&c.DroppedHere[1], o.DroppedHere[1]}, {&c.RNRNAKs, o.RNRNAKs}, {&c.CE, o.CE}, {&c.EarlyAnswers, o.EarlyAnswers},
		{&c.notECT, o.notECT}, {&c.provenUp, o.provenUp}, {&c.lostBack, o.lostBack}, {&c.lostAsked, o.lostAsked}, {&c.discarded, o.discarded}, {&c.overtaken, o.overtaken}, {&c.copies, o.copies},
	} {
		*p.to += p.from
	}
	c.AgainRequests.plus(o.AgainRequests)
	c.AgainResponses.plus(o.AgainResponses)
	c.Perhaps.plus(o.Perhaps)
	for i := range c.NAKs {
		c.NAKs[i] += o.NAKs[i]
	}
	for i := range c.Messages {
		c.Messages[i] += o.Messages[i]
	}
	c.Sizes.merge(&o.Sizes)
	c.RTT.merge(&o.RTT)
	c.ReadRTT.merge(&o.ReadRTT)
}

// withoutMissed takes from what seems to be lost before here what the capture has missed: as large a part of what was sent again as of the rest, or twice that, as
// it misses several in a row. READ responses count if there are reads.
func (c *Counts) withoutMissed(reads bool) {
	if c.NotCaptured < 2 {
		return
	}
	again, first := c.AgainRequests.Packets, c.Requests.Packets-c.AgainRequests.Packets
	if reads {
		again, first = again+c.AgainResponses.Packets, first+c.Responses.Packets-c.AgainResponses.Packets
	}
	missed := 2*c.NotCaptured*again/max(first, 1) + 1
	c.LostUpstream -= min(missed, c.LostUpstream-min(c.provenUp, c.LostUpstream))
}
