//go:build interleave

package flowtable

import (
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/interleave"
)

// oneFlow is a table of one flow, with key 0 and an answer, and the flow's index and state.
func oneFlow(t *testing.T) (*Table, Index, State) {
	tab, err := New(make([]byte, Size(1)), Config{Capacity: 1})
	if err != nil {
		t.Fatal(err)
	}
	var out [1]Ref
	tab.Lookup(records(mixKey(0)), 1, out[:])
	x := out[0].Index
	tab.SetAnswer(x, tab.State(x), mixAnswer(0, 1))
	return tab, x, tab.State(x)
}

// TestInterleaveReaders: while the owner gives a flow's entry to another key, a reader that looks for either finds its flow or none, and the key that it reads belongs
// to the state.
func TestInterleaveReaders(t *testing.T) {
	// The other key differs in the first and the last word, so that a mixture of both is either of two other keys.
	const other = 1<<0 | 1<<4
	for _, id := range []uint64{0, other, 1 << 0, 1 << 4} {
		interleave.Check(t, false, func() ([]func(), func() string) {
			tab, x, before := oneFlow(t)
			var state, read State
			var found, whole bool
			var at Key
			return []func(){
					func() { tab.Lookup(records(mixKey(other)), 2, make([]Ref, 1)) },
					func() {
						k := mixKey(id)
						_, state, found = tab.Find(&k)
						if read = tab.State(x); read.Live() {
							at, whole = tab.KeyAt(x, read)
						}
					},
				}, func() string {
					now := tab.State(x)
					of := map[uint32]uint64{before.Generation(): 0, now.Generation(): other}
					switch {
					case found && of[state.Generation()] != id:
						return fmt.Sprintf("key %d was found in generation %d, of another key", id, state.Generation())
					case whole && mixID(&at) != of[read.Generation()]:
						return fmt.Sprintf("generation %d has key %d, expected %d", read.Generation(), mixID(&at), of[read.Generation()])
					}
					return ""
				}
		})
	}
}

// TestInterleaveAnswers: two workers change parts of a flow's answer, while its owner begins another flow in the entry. Nobody's change is lost, and none reaches the
// other flow.
func TestInterleaveAnswers(t *testing.T) {
	for _, renews := range []bool{false, true} {
		interleave.Check(t, false, func() ([]func(), func() string) {
			tab, x, first := oneFlow(t)
			was, bits := first.Answer(), [2]Answer{1 << 20, 1 << 21}
			changed := was
			var threads []func()
			for _, bit := range bits {
				threads = append(threads, func() {
					for {
						s := tab.State(x)
						if !s.Live() || s.Generation() != first.Generation() {
							return
						}
						if tab.SetAnswer(x, s, s.Answer()|bit) {
							changed |= bit
							return
						}
					}
				})
			}
			if renews {
				threads = append(threads, func() { tab.Renew(x, 2) })
			}
			return threads, func() string {
				switch s := tab.State(x); {
				case renews && (s.Answer() != 0 || s.Generation() == first.Generation()):
					return fmt.Sprintf("the new flow's state is %#x, expected no answer and another generation than %#x", s, first)
				case !renews && s.Answer() != changed:
					return fmt.Sprintf("the answer is %#x, expected %#x", s.Answer(), changed)
				}
				return ""
			}
		})
	}
}
