package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
)

const (
	flowsAtOnce = 8192            // of one request in memory, 1.4 MB
	answerTime  = 5 * time.Second // for a worker to copy them
	shortPause  = 20 * time.Microsecond
	longPause   = time.Millisecond
)

// Flow is a flow of a running gateway: the report's fields, the port at which its packets arrive, and its present state.
type Flow struct {
	Port string `json:"port" column:"PORT,,,6"`
	report.Flow
	CandidateQP *uint32 `json:"candidate_qp,omitempty" doc:"Possible QP of the sender; no notification names it."`
	AgeNS       int64   `json:"age_ns" doc:"Time since the flow's last packet, ns." column:"AGE,,duration,4"`
	QueuedBytes uint64  `json:"queued_bytes,omitempty" doc:"Queued bytes of the flow, as far as the worker tracks them; in an episode the maximum." column:"QUEUED,Queued,bytes,10"`
	RateBPS     *uint64 `json:"rate_bps,omitempty" doc:"Rate: of a port its configured one, of a flow the measured one, bit/s." column:"RATE,Rate,rate"` // of its frames without FCS; nil where it wasn't measured
}

// FlowsBody is the answer to GET /v1/flows.
type FlowsBody struct {
	Flows []Flow `json:"flows"`
	More  bool   `json:"more" doc:"Whether limit left out some flows."`
	Total uint64 `json:"total,omitempty" doc:"With sort: number of flows that the filters select, once for each worker that sees one."`
}

// MinInterval and MaxInterval bound the time for which rates are measured.
const (
	MinInterval = 10 * time.Millisecond
	MaxInterval = 5 * time.Second
)

const (
	maxLimit   = 1<<32 - 1 // of flows
	maxEpisode = 1<<53 - 1 // the greatest integer that every reader of JSON has exactly
)

// flows answers what concerns flows, which the workers copy.
type flows struct {
	plane   *dataplane.Dataplane
	gateway Gateway
	ports   []string
	turns   []chan struct{} // by worker: the request that may ask it for flows holds the one token
	// The request that measures rates holds the one token, and waits with wait. Its client may take ratesTime to read the answer.
	sampling  chan struct{}
	wait      func(context.Context, time.Duration) error
	ratesTime time.Duration
}

// ends are the ends of flows that a request selects.
type ends struct {
	source, destination     netip.Prefix // not valid: all
	sourceQP, destinationQP *uint32      // nil: all
}

func readEnds(r *request) ends {
	return ends{get[netip.Prefix](r, "source_ip"), get[netip.Prefix](r, "destination_ip"), get[*uint32](r, "source_qp"), get[*uint32](r, "destination_qp")}
}

func (e *ends) want(k *flowtable.Key, known pairing.Answer) bool {
	return (e.destinationQP == nil || *e.destinationQP == k.DestQP) &&
		(e.sourceQP == nil || known.State() == pairing.Confirmed && known.SourceQP() == *e.sourceQP) &&
		(!e.source.IsValid() || e.source.Contains(k.Src.Netip())) && (!e.destination.IsValid() || e.destination.Contains(k.Dst.Netip()))
}

// filter selects flows. A parameter that is not given selects all.
type filter struct {
	ends
	page
	state, evidence string
	interval        time.Duration // for which rates are measured; 0: don't measure
}

// readFilter reads what a request for flows selects, sorted by first unless the request says otherwise.
func readFilter(r *request, first string) (*filter, error) {
	p, err := readPage(r, first)
	return &filter{readEnds(r), p, get[string](r, "qp_state"), get[string](r, "qp_evidence"), get[time.Duration](r, "interval")}, err
}

// wants reports whether the filter selects a flow.
func (f *filter) wants(c *dataplane.FlowRecord) bool {
	v := &c.View
	return (f.state == "" || f.state == v.State().String()) && (f.evidence == "" || f.evidence == v.Evidence().String()) && f.want(&c.Key, v.Answer)
}

// list writes the flows that a filter selects.
func (s *flows) list(r *request) (any, error) {
	f, err := readFilter(r, "")
	if err != nil {
		return nil, err
	}
	if f.sort != "" {
		return s.rank(r, f)
	}
	rates, leave, err := s.sample(r, f)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := newFlowWriter(r, "flows", f)
	out.describe = func(worker int, c *dataplane.FlowRecord) any {
		return makeFlow(s.ports[c.Key.Port], c, rates.of(worker, c))
	}
	if f.interval > 0 {
		out.end = time.Now().Add(s.ratesTime)
	}
	return nil, s.write(r, out)
}

// pairs writes the pairs of all workers, as list does with flows.
func (s *flows) pairs(r *request) (any, error) {
	f, err := readFilter(r, "")
	if err != nil {
		return nil, err
	}
	out := newFlowWriter(r, "pairs", f)
	out.wants = func(c *dataplane.FlowRecord) bool { return c.View.State() != pairing.Unknown && f.wants(c) }
	out.describe = func(_ int, c *dataplane.FlowRecord) any { return makePair(s.ports[c.Key.Port], c) }
	return nil, s.write(r, out)
}

// makeFlow describes a flow, whose rate is nil where it was not measured.
func makeFlow(port string, c *dataplane.FlowRecord, rate *uint64) Flow {
	f := Flow{Port: port, Flow: report.MakeFlow(c), AgeNS: max(c.At-c.LastSeen, 0), QueuedBytes: c.Queued, RateBPS: rate}
	if c.View.State() == pairing.Candidate {
		qp := c.View.SourceQP()
		f.CandidateQP = &qp
	}
	return f
}

// Pair is a sender's QP and the receiver's QP that it is connected to, as seen in one flow.
type Pair struct {
	Port          string     `json:"port" doc:"The port at which the flow arrives."`
	VLAN          []uint16   `json:"vlan,omitempty" doc:"VID of each VLAN tag, the outer one first." column:",VLAN or tunnel,place"`
	VLANProtocol  []string   `json:"vlan_protocol,omitempty" doc:"TPID of each VLAN tag; left out where all are 0x8100."`
	Tunnel        string     `json:"tunnel,omitempty" doc:"Kind of tunnel that the flow is in."`
	TunnelID      uint32     `json:"tunnel_id,omitempty" doc:"Identifier of the tunnel: VXLAN Network Identifier, GRE key, bottom MPLS label."`
	SourceIP      netip.Addr `json:"source_ip" column:",Sender,host"`
	SourceQP      *uint32    `json:"source_qp" doc:"QP of the sender; null unless it is confirmed." column:",QP,qp"`
	CandidateQP   *uint32    `json:"candidate_qp" doc:"QP that may be the sender's; null if the QP is confirmed. No notification names it."`
	DestinationIP netip.Addr `json:"destination_ip" column:",Receiver,host"`
	DestinationQP uint32     `json:"destination_qp" column:",QP,id"`
	QPState       string     `json:"qp_state" enum:"candidate,confirmed" column:",State"`
	QPEvidence    *string    `json:"qp_evidence" doc:"How the source QP was found." column:",Evidence"`
	QPAge         *int64     `json:"qp_age_ns" doc:"Time in nanoseconds for which the pair has had this state and evidence; null if no packet has arrived since they changed." column:",For,duration"`
	QPConflicts   uint32     `json:"qp_contradictions" doc:"How often the pair was withdrawn because packets contradicted it." column:",Contradictions,count"`
	Ended         string     `json:"ended,omitempty" doc:"Why the connection has ended." column:",Ended"`
}

// PairsBody is the answer to GET /v1/pairs.
type PairsBody struct {
	Pairs []Pair `json:"pairs"`
	More  bool   `json:"more" doc:"Whether limit left out some pairs."`
}

// makePair describes the pair of a flow whose source QP is confirmed or a candidate.
func makePair(port string, r *dataplane.FlowRecord) Pair {
	f := report.MakeFlow(r)
	p := Pair{
		Port: port, VLAN: f.VLAN, VLANProtocol: f.VLANProtocol, Tunnel: f.Tunnel, TunnelID: f.TunnelID, SourceIP: f.SourceIP, SourceQP: f.SourceQP, DestinationIP: f.DestinationIP,
		DestinationQP: f.DestinationQP, QPState: f.QPState, QPEvidence: f.QPEvidence, QPConflicts: f.QPConflicts, Ended: f.Ended,
	}
	if qp := r.View.SourceQP(); f.SourceQP == nil && qp != 0 {
		p.CandidateQP = &qp
	}
	if r.View.Since != 0 {
		age := r.At - r.View.Since
		p.QPAge = &age
	}
	return p
}

// write writes the flows that out selects, worker by worker, in the order of their places in the table, which don't change. It reads and writes some at
// a time, so that a million flows don't need memory for a million.
func (s *flows) write(r *request, out *flowWriter) error {
	err := s.each(r, out.end, &dataplane.Snapshot{}, out.write)
	if err == nil {
		err = out.close()
	}
	if err != nil {
		return out.fail(err)
	}
	return nil
}

// each calls do with what a snapshot asks for of the flows of all workers, some at a time, until do needs no more. end is as in keepGoing.
func (s *flows) each(r *request, end time.Time, snapshot *dataplane.Snapshot, do func(worker int, flows []dataplane.FlowRecord) (more bool, err error)) error {
	snapshot.Flows = make([]dataplane.FlowRecord, 0, flowsAtOnce)
	for worker := range s.turns {
		snapshot.At = flowtable.None
		for snapshot.End = false; !snapshot.End; {
			r.keepGoing(end)
			if err := s.fill(r.Context(), worker, snapshot); err != nil {
				return err
			}
			if more, err := do(worker, snapshot.Flows); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// fill makes a worker copy the next flows. It polls until the worker is done: the worker doesn't signal that, as it must not wait for
// another goroutine.
func (s *flows) fill(ctx context.Context, worker int, snapshot *dataplane.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	tooLate := func() error {
		return failed(http.StatusServiceUnavailable, "worker %d does not answer: it is stopping, or gets no CPU time; try again", worker)
	}
	select {
	case s.turns[worker] <- struct{}{}:
	case <-ctx.Done():
		return tooLate()
	}
	defer func() { <-s.turns[worker] }()
	w := s.plane.Worker(worker)
	snapshot.Flows = snapshot.Flows[:0]
	for pause := shortPause; !w.Ask(snapshot); pause = min(2*pause, longPause) { // the gateway itself has a request for it
		if ctx.Err() != nil {
			return tooLate()
		}
		time.Sleep(pause)
	}
	for pause := shortPause; w.Asked(snapshot); pause = min(2*pause, longPause) {
		if ctx.Err() != nil {
			w.Forget(snapshot) // and is not read again
			return tooLate()
		}
		time.Sleep(pause)
	}
	return nil
}

// flowWriter writes the answer: {"flows":[ one flow per line ],"more":false}.
type flowWriter struct {
	w        http.ResponseWriter
	to       *bufio.Writer
	name     string // of the list
	offset   uint64 // to leave out at the beginning
	limit    uint64 // 0: none
	wants    func(*dataplane.FlowRecord) bool
	describe func(worker int, c *dataplane.FlowRecord) any
	end      time.Time // when the client must have read the answer; zero: no limit
	n        uint64    // written
	more     bool      // the limit left some out
	begun    bool
}

func newFlowWriter(r *request, name string, f *filter) *flowWriter {
	return &flowWriter{w: r.to, to: bufio.NewWriterSize(r.to, 64<<10), name: name, offset: f.offset, limit: f.limit, wants: f.wants}
}

// write adds those of a worker's flows that the filter selects, and reports whether it takes more.
func (o *flowWriter) write(worker int, flows []dataplane.FlowRecord) (more bool, err error) {
	if !o.begun {
		o.begun = true
		o.w.Header().Set("Content-Type", jsonType)
		_, err = o.to.WriteString(`{"` + o.name + `":[`)
	}
	for i := range flows {
		c := &flows[i]
		if !o.wants(c) {
			continue
		}
		if o.offset > 0 {
			o.offset--
			continue
		}
		if o.limit > 0 && o.n == o.limit {
			o.more = true
			return false, err
		}
		b, failure := json.Marshal(o.describe(worker, c))
		if failure != nil {
			return false, failure
		}
		separator := ",\n"
		if o.n == 0 {
			separator = "\n"
		}
		o.n++
		_, _ = o.to.WriteString(separator) // the next write has the error of this one
		if _, err = o.to.Write(b); err != nil {
			return false, err
		}
	}
	return true, err
}

func (o *flowWriter) close() error {
	_, _ = fmt.Fprintf(o.to, "\n],\"more\":%t}\n", o.more) // Flush returns the error
	return o.to.Flush()
}

// fail returns the error to answer with. If part of an answer may have been sent, it ends the connection instead, so that the client
// doesn't take that part for the whole answer.
func (o *flowWriter) fail(err error) error {
	if !o.begun {
		return err
	}
	panic(http.ErrAbortHandler)
}
