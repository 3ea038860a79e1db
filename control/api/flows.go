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
)

const (
	flowsAtOnce = 1024            // of one request in memory
	answerTime  = 5 * time.Second // for a worker to copy so many
	shortPause  = 20 * time.Microsecond
	longPause   = time.Millisecond
)

// Flow is a flow of a running gateway: what the report says of one, and the port that its packets come in by.
type Flow struct {
	Port string `json:"port"`
	report.Flow
}

// getFlows writes the flows that a filter wants, worker by worker, in the order of their places in the table, which a flow keeps
// as long as it lives. They are read and written piece by piece, so an answer of a million flows needs no memory for a million.
func (s *Server) getFlows(w http.ResponseWriter, r *http.Request) error {
	f, err := parseFilter(r)
	if err != nil {
		return err
	}
	out := &flowWriter{w: w, to: bufio.NewWriterSize(w, 64<<10), filter: f, ports: s.ports}
	snapshot := &dataplane.Snapshot{Flows: make([]dataplane.FlowRecord, 0, flowsAtOnce)}
	for worker := range s.turns {
		snapshot.At = flowtable.None
		for snapshot.End = false; !snapshot.End && !out.more; {
			keepGoing(w)
			if err := s.fill(r.Context(), worker, snapshot); err != nil {
				return out.fail(err)
			}
			if err := out.write(snapshot.Flows); err != nil {
				return out.fail(err)
			}
		}
	}
	if err := out.end(); err != nil {
		return out.fail(err)
	}
	return nil
}

// fill has a worker copy the next flows. The worker gives no sign when it is done, since it must not wait for anybody; so it is looked
// at again and again.
func (s *Server) fill(ctx context.Context, worker int, snapshot *dataplane.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	tooLate := func() error {
		return failed(http.StatusServiceUnavailable, "worker %d does not answer: it is stopping, or gets no processor; try again", worker)
	}
	select {
	case s.turns[worker] <- struct{}{}:
	case <-ctx.Done():
		return tooLate()
	}
	defer func() { <-s.turns[worker] }()
	w := s.plane.Worker(worker)
	snapshot.Flows = snapshot.Flows[:0]
	if !w.Ask(snapshot) {
		return tooLate()
	}
	for pause := shortPause; w.Asked(snapshot); pause = min(2*pause, longPause) {
		if ctx.Err() != nil {
			w.Forget(snapshot) // and is not looked at again
			return tooLate()
		}
		time.Sleep(pause)
	}
	return nil
}

// flowWriter writes the answer: {"flows":[ a flow a line ],"more":false}.
type flowWriter struct {
	w      http.ResponseWriter
	to     *bufio.Writer
	filter *filter
	ports  []string
	n      uint64 // flows written
	more   bool   // the limit left some out
	begun  bool
}

// write adds those of the flows that are wanted.
func (o *flowWriter) write(flows []dataplane.FlowRecord) error {
	if err := o.begin(); err != nil {
		return err
	}
	for i := range flows {
		c := &flows[i]
		if !o.filter.wants(c) {
			continue
		}
		if o.filter.limit > 0 && o.n == o.filter.limit {
			o.more = true
			return nil
		}
		if err := o.add(c); err != nil {
			return err
		}
	}
	return nil
}

func (o *flowWriter) add(c *dataplane.FlowRecord) error {
	b, err := json.Marshal(Flow{o.ports[c.Key.Port], report.MakeFlow(c)})
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

// begin writes what stands before the first flow.
func (o *flowWriter) begin() error {
	if o.begun {
		return nil
	}
	o.begun = true
	o.w.Header().Set("Content-Type", "application/json")
	_, err := o.to.WriteString(`{"flows":[`)
	return err
}

func (o *flowWriter) end() error {
	text := "\n],\"more\":false}\n"
	if o.more {
		text = "\n],\"more\":true}\n"
	}
	if _, err := o.to.WriteString(text); err != nil {
		return err
	}
	return o.to.Flush()
}

// fail is the error to answer with, or the end of the connection where part of an answer may be on its way: a client must not take
// that for the whole.
func (o *flowWriter) fail(err error) error {
	if !o.begun {
		return err
	}
	panic(http.ErrAbortHandler)
}
