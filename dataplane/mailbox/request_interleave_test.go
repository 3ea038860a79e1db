//go:build interleave

package mailbox

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/interleave"
)

// TestInterleaveRequest: of two clients, each of which looks once for its answer and then gives up, neither reads an answer that the worker hasn't completed, nor withdraws
// the other one's request; the worker answers no request that isn't there.
func TestInterleaveRequest(t *testing.T) {
	type request struct {
		answered    int // halves
		asked, gave bool
	}
	interleave.Check(t, false, func() ([]func(), func() string) {
		var box Request[request]
		var of [2]request
		wrong := ""
		client := func(r *request) func() {
			return func() {
				if r.asked = box.Ask(r); !r.asked {
					return
				}
				if box.Asked(r) {
					r.gave = true
					box.Forget(r)
				} else if r.answered != 2 {
					wrong = fmt.Sprintf("%d halves of an answer are read", r.answered)
				}
			}
		}
		work := func() {
			if r := box.Requested(); r != nil {
				r.answered++
				box.Forget(nil) // changes nothing: the worker copies in several steps
				r.answered++
				box.Forget(r)
			}
		}
		return []func(){client(&of[0]), client(&of[1]), func() { work(); work() }}, func() string {
			work()
			for i := range of {
				if r := &of[i]; r.asked && !r.gave && r.answered != 2 || r.answered > 2 {
					return fmt.Sprintf("request %d has %d halves of an answer", i, r.answered)
				}
			}
			if box.Requested() != nil {
				return "a request stays that nobody answers"
			}
			return wrong
		}
	})
}
