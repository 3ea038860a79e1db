package dataplane

import (
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// The record of a flow that ends says why, and what was done about it; the flow that follows starts at nothing.
func TestEndedRecords(t *testing.T) {
	var ended []FlowRecord
	w := testWorker(t, Config{Flows: 2, Aging: 100, Ended: func(r *FlowRecord) { ended = append(ended, *r) }})
	want := func(k flowtable.Key, why pairing.Ending, marked uint64, notified uint32) {
		t.Helper()
		if len(ended) != 1 {
			t.Fatalf("%d flows ended: %+v", len(ended), ended)
		}
		r := ended[0]
		ended = nil
		if r.Key != k || r.Ended != why || r.Marked != marked || r.Notified[packet.LongHaulCNP] != notified {
			t.Errorf("%+v, want QP %d, %v, %d marked, %d notified", r, k.DestQP, why, marked, notified)
		}
	}
	x := w.see(testKey(0), 1)
	w.state.Accounts.Get(x).Marked = 7
	w.state.Accounts.Get(x).Notified[packet.LongHaulCNP] = 1
	w.state.Flows.Renew(x, 2)
	want(testKey(0), pairing.EndedReuse, 7, 1)
	w.see(testKey(1), 3)
	w.see(testKey(2), 4)
	want(testKey(0), pairing.EndedEviction, 0, 0)
	w.see(testKey(1), 1000)
	want(testKey(1), pairing.EndedAged, 0, 0)
	for range 4 {
		w.state.Flows.Sweep(1000)
	}
	want(testKey(2), pairing.EndedAged, 0, 0)
	records := slices.Collect(func(yield func(uint32) bool) {
		for r := range w.Records() {
			if r.Ended != pairing.Open || !yield(r.Key.DestQP) {
				return
			}
		}
	})
	if !slices.Equal(records, []uint32{testKey(1).DestQP}) {
		t.Errorf("flows to QPs %v are left", records)
	}
}
