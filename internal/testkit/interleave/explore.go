// Package interleave checks protocols without locks: it runs a few threads of the real code in every order of their atomic operations. Its types replace those of
// sync/atomic, in a build whose overlay changes the imports (TestInterleavings). In any other build nothing of it is linked.
//
// The order of two operations on different words makes no difference, so of all orders that differ only in such pairs one runs (sleep sets: Godefroid, Partial-Order Methods
// for the Verification of Concurrent Systems, 1996, chapter 5). Memory is sequentially consistent, as Go promises for atomic operations.
package interleave

import (
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// most is the number of orders after which Explore gives up: a model must be small.
const most = 4_000_000

// operation is what a thread does next. Without an address it is the code between two atomic operations.
type operation struct {
	address unsafe.Pointer
	write   bool
}

// depends reports whether the order of two operations may matter.
func (o operation) depends(p operation) bool { return o.address == p.address && (o.write || p.write) }

// thread is one of the threads of a run.
type thread struct {
	yield func(operation) bool
	step  func() (operation, bool)
	stop  func()
	next  operation
	alive bool
}

// choice is one step of a run, with the threads that need not be tried in its place: sets with a bit for each.
type choice struct {
	thread             int
	alive, sleep, done uint
}

// run is the run of this moment: one thread at a time.
var run struct {
	yield func(operation) bool // of the thread that runs; nil: not in a thread
	plain bool                 // the code between two atomic operations is a step, too
	trace *[]string            // where steps are noted, nil: nowhere
	who   int
}

// stopped ends a thread of a run that isn't continued.
type stopped struct{}

// before ends a thread's step, because an operation at an address comes next. The caller then does it.
func before[T any](address *T, write bool) { pause(operation{unsafe.Pointer(address), write}) }

// after is called after an operation.
func after() {
	if run.plain {
		pause(operation{write: true})
	}
}

func pause(o operation) {
	yield := run.yield
	if yield == nil {
		return
	}
	if !yield(o) {
		run.yield = nil // deferred functions of the thread run to their end
		panic(stopped{})
	}
	if run.trace != nil && o.address != nil {
		_, file, line, _ := runtime.Caller(3)
		*run.trace = append(*run.trace, fmt.Sprintf("thread %d: %s:%d", run.who, file[strings.LastIndexByte(file, '/')+1:], line))
	}
}

// start begins a thread; it stands before its first operation then.
func start(body func()) *thread {
	t := &thread{}
	t.step, t.stop = iter.Pull(func(yield func(operation) bool) {
		defer func() {
			if p := recover(); p != nil && p != any(stopped{}) {
				panic(p)
			}
		}()
		t.yield = yield
		if yield(operation{write: run.plain}) {
			body()
		}
	})
	t.next, t.alive = t.step()
	return t
}

// resume does the thread's next operation, and the code up to the one after it.
func (t *thread) resume() {
	run.yield = t.yield
	t.next, t.alive = t.step()
	run.yield = nil
}

// Explore runs the threads that begin returns in every order of their atomic operations. begin makes new memory for each run; it also returns a check, which is called
// after the threads have ended and returns what is wrong, or "". plain: the threads share other memory than atomic words, so the code between two operations is a step
// of its own. It returns the number of orders that ran to their end, and the first one for which the check wasn't "".
func Explore(plain bool, begin func() (threads []func(), check func() string)) (orders int, wrong string) {
	var path []choice
	run.plain = plain
	for orders < most {
		ended, why := follow(&path, begin)
		if ended {
			orders++
		}
		if why != "" {
			var trace []string
			run.trace = &trace
			_, _ = follow(&path, begin)
			run.trace = nil
			return orders, why + "\n" + strings.Join(trace, "\n")
		}
		for len(path) > 0 {
			last := &path[len(path)-1]
			last.done |= 1 << last.thread
			if last.thread = lowest(last.alive &^ (last.sleep | last.done)); last.thread >= 0 {
				break
			}
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return orders, ""
		}
	}
	return orders, fmt.Sprintf("more than %d orders: make the model smaller", most)
}

// lowest is the first thread of a set, -1 for none.
func lowest(set uint) int {
	for i := range 8 {
		if set>>i&1 != 0 {
			return i
		}
	}
	return -1
}

// follow makes a run: first the steps of the path, then the first thread that need not sleep, and so on, which it adds to the path. ended is false if all that could go on
// sleep: then the run is like an earlier one.
func follow(path *[]choice, begin func() ([]func(), func() string)) (ended bool, wrong string) {
	bodies, check := begin()
	threads := make([]*thread, len(bodies))
	for i, body := range bodies {
		threads[i] = start(body)
	}
	defer func() {
		for _, t := range threads {
			t.stop()
		}
	}()
	var sleep uint
	for depth := 0; ; depth++ {
		if depth == len(*path) {
			c := choice{sleep: sleep}
			for i, t := range threads {
				if t.alive {
					c.alive |= 1 << i
				}
			}
			if c.alive == 0 {
				return true, check()
			}
			if c.thread = lowest(c.alive &^ sleep); c.thread < 0 {
				return false, ""
			}
			*path = append(*path, c)
		}
		c := (*path)[depth]
		t := threads[c.thread]
		sleep = 0
		for i, other := range threads {
			if (c.sleep|c.done)>>i&1 != 0 && i != c.thread && !other.next.depends(t.next) {
				sleep |= 1 << i
			}
		}
		run.who = c.thread
		t.resume()
	}
}

// Check is Explore for a test, which fails if anything is wrong, or nothing was tried.
func Check(t testing.TB, plain bool, begin func() (threads []func(), check func() string)) {
	t.Helper()
	orders, wrong := Explore(plain, begin)
	t.Logf("%d orders", orders)
	if wrong != "" {
		t.Fatal(wrong)
	} else if orders < 2 {
		t.Fatal("one order: the build has no overlay, run TestInterleavings")
	}
}
