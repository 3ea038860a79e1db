//go:build interleave

package notify

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/interleave"
)

// oldRecords is a full history of two records, the next of which overwrites record 0.
func oldRecords() *History {
	h := newHistory(make([]byte, historySize(2)), 2)
	for range 2 {
		h.record().Time = 1
	}
	h.Publish()
	return &h
}

// TestInterleaveSlots: the worker writes no record that is being read.
func TestInterleaveSlots(t *testing.T) {
	interleave.Check(t, true, func() ([]func(), func() string) {
		h, wrong := oldRecords(), ""
		var read [1]NotificationRecord
		return []func(){
			func() {
				// The reader copies in one step here, but in fact until it leaves the slot.
				if s := h.record(); s != nil && s.readers.Load() != 0 && read[0].Time != 0 {
					wrong = "the worker writes what is being read"
				}
			},
			func() { h.Read(0, read[:]) },
		}, func() string { return wrong }
	})
}

// TestInterleaveHistory: a reader gets the records that it asks for, whole, or none.
func TestInterleaveHistory(t *testing.T) {
	interleave.Check(t, false, func() ([]func(), func() string) {
		h, n := oldRecords(), 0
		var read [1]NotificationRecord
		return []func(){
				func() {
					if s := h.record(); s != nil {
						s.Time = 2
					}
					h.Publish()
				},
				func() {
					h.Read(0, read[:])
					n, _ = h.Read(2, read[:])
				},
			}, func() string {
				if n > 0 && (read[0].Number != 2 || read[0].Time != 2) {
					return fmt.Sprintf("record %d of time %d was read for record 2", read[0].Number, read[0].Time)
				}
				return ""
			}
	})
}
