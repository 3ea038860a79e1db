package api

import (
	"context"
	"net/http"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
)

// rates has the bytes of flows at one time, by worker and place in its table. Their rates follow from the bytes at a second time. Flows that have ended
// or begun in between have no rate.
type rates [][]sample

type sample struct {
	at         int64 // by the worker's clock
	bytes      uint64
	generation uint32
}

// note records the bytes of a flow until now.
func (r *rates) note(worker int, c *dataplane.FlowRecord) {
	for len(*r) <= worker {
		*r = append(*r, nil)
	}
	of, x := (*r)[worker], int(c.Flow.Index)
	if x >= len(of) {
		of = append(of, make([]sample, x+1-len(of))...)
	}
	of[x] = sample{c.At, c.Traffic.Bytes, c.Flow.Generation}
	(*r)[worker] = of
}

// of is a flow's rate since it was noted, bit/s; nil if it wasn't.
func (r rates) of(worker int, c *dataplane.FlowRecord) *uint64 {
	if worker >= len(r) || int(c.Flow.Index) >= len(r[worker]) {
		return nil
	}
	s := &r[worker][c.Flow.Index]
	if s.at == 0 || s.generation != c.Flow.Generation || c.At <= s.at || c.Traffic.Bytes < s.bytes {
		return nil
	}
	rate := uint64(float64(c.Traffic.Bytes-s.bytes) * 8e9 / float64(c.At-s.at))
	return &rate
}

// turnTime is how long a request waits until the others before it have measured rates: of a million flows each takes seconds.
const turnTime = 30 * time.Second

// ratesTime is how long a client may take to read an answer with rates: a slow one must not keep others from measuring.
const ratesTime = time.Minute

// sample notes the flows that a filter selects, and waits for the filter's interval, if it has one. As this takes 24 bytes per flow, only one request does it at
// a time, until leave.
func (s *flows) sample(r *request, f *filter) (rates rates, leave func(), err error) {
	if f.interval == 0 {
		return nil, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), turnTime)
	defer cancel()
	select {
	case s.sampling <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, failed(http.StatusServiceUnavailable, "another request is measuring rates; try again, or leave out interval")
	}
	leave = func() { <-s.sampling }
	err = s.each(r, time.Time{}, &dataplane.Snapshot{}, func(worker int, flows []dataplane.FlowRecord) (bool, error) {
		for i := range flows {
			if f.wants(&flows[i]) {
				rates.note(worker, &flows[i])
			}
		}
		return true, nil
	})
	if err == nil {
		r.keepGoing(time.Time{})
		if s.wait(r.Context(), f.interval) != nil {
			err = failed(http.StatusServiceUnavailable, "the gateway is stopping")
		}
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return rates, leave, nil
}

// pause waits for a time, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
