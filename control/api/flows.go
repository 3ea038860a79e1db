package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/pairing"
)

const (
	flowsAtOnce = 1024            // of one request in memory
	answerTime  = 5 * time.Second // for a worker to copy them
	shortPause  = 20 * time.Microsecond
	longPause   = time.Millisecond
)

// Flow is a flow of a running gateway: the report's fields, the port at which its packets arrive, and its present state.
type Flow struct {
	Port string `json:"port"`
	report.Flow
	CandidateQP *uint32 `json:"candidate_qp,omitempty"` // may be the source QP; no notification names it
	AgeNS       int64   `json:"age_ns"`                 // since its last packet
	QueuedBytes uint64  `json:"queued_bytes,omitempty"` // in a queue, as far as the worker tracks shares
	RateBPS     *uint64 `json:"rate_bps,omitempty"`     // of its frames without FCS; nil where it wasn't measured
}

type flowsBody struct {
	Flows []Flow `json:"flows"`
	More  bool   `json:"more" doc:"Whether limit left out some flows."`
}

// getFlows writes the flows that a filter selects.
func (s *Server) getFlows(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	f, err := parseFilter(parameters)
	if err != nil {
		return err
	}
	out := s.newFlowWriter(w, "flows", f.limit, f.wants)
	out.describe = func(worker int, c *dataplane.FlowRecord) any {
		return makeFlow(s.ports[c.Key.Port], c, out.rates.of(worker, c))
	}
	if f.interval > 0 {
		leave, err := s.sample(w, r, f, &out.rates)
		if err != nil {
			return err
		}
		defer leave()
		out.end = time.Now().Add(s.ratesTime)
	}
	return s.list(w, r, out)
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

// list writes the flows that out selects, worker by worker, in the order of their places in the table, which don't change. It reads and writes some at
// a time, so that a million flows don't need memory for a million.
func (s *Server) list(w http.ResponseWriter, r *http.Request, out *flowWriter) error {
	if err := s.eachFlow(w, r, out.end, out.write); err != nil {
		return out.fail(err)
	}
	if err := out.close(); err != nil {
		return out.fail(err)
	}
	return nil
}

// eachFlow calls do with the flows of all workers, some at a time, until do needs no more. end is as in keepGoing.
func (s *Server) eachFlow(w http.ResponseWriter, r *http.Request, end time.Time, do func(worker int, flows []dataplane.FlowRecord) (more bool, err error)) error {
	return s.eachOf(w, r, end, &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, flowsAtOnce)}, do)
}

// eachOf is eachFlow for what a snapshot asks for.
func (s *Server) eachOf(w http.ResponseWriter, r *http.Request, end time.Time, snapshot *dataplane.Snapshot,
	do func(worker int, flows []dataplane.FlowRecord) (more bool, err error),
) error {
	for worker := range s.turns {
		snapshot.At = flowtable.None
		for snapshot.End = false; !snapshot.End; {
			keepGoing(w, end)
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
func (s *Server) fill(ctx context.Context, worker int, snapshot *dataplane.Snapshot) error {
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
	limit    uint64 // 0: none
	wants    func(*dataplane.FlowRecord) bool
	describe func(worker int, c *dataplane.FlowRecord) any
	rates    rates     // none, unless rates are wanted
	end      time.Time // when the client must have read the answer; zero: no limit
	n        uint64    // written
	more     bool      // the limit left some out
	begun    bool
}

func (s *Server) newFlowWriter(w http.ResponseWriter, name string, limit uint64, wants func(*dataplane.FlowRecord) bool) *flowWriter {
	return &flowWriter{w: w, to: bufio.NewWriterSize(w, 64<<10), name: name, limit: limit, wants: wants}
}

// write adds those of a worker's flows that the filter selects, and reports whether it takes more.
func (o *flowWriter) write(worker int, flows []dataplane.FlowRecord) (more bool, err error) {
	if err := o.begin(); err != nil {
		return false, err
	}
	for i := range flows {
		c := &flows[i]
		if !o.wants(c) {
			continue
		}
		if o.limit > 0 && o.n == o.limit {
			o.more = true
			return false, nil
		}
		if err := o.add(worker, c); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (o *flowWriter) add(worker int, c *dataplane.FlowRecord) error {
	b, err := json.Marshal(o.describe(worker, c))
	if err != nil {
		return err
	}
	separator := ",\n"
	if o.n == 0 {
		separator = "\n"
	}
	o.n++
	if _, err := o.to.WriteString(separator); err != nil {
		return err
	}
	_, err = o.to.Write(b)
	return err
}

// begin writes the text before the first flow.
func (o *flowWriter) begin() error {
	if o.begun {
		return nil
	}
	o.begun = true
	o.w.Header().Set("Content-Type", jsonType)
	_, err := o.to.WriteString(`{"` + o.name + `":[`)
	return err
}

func (o *flowWriter) close() error {
	text := "\n],\"more\":false}\n"
	if o.more {
		text = "\n],\"more\":true}\n"
	}
	if _, err := o.to.WriteString(text); err != nil {
		return err
	}
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
