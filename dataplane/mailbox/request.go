package mailbox

import "sync/atomic"

// Request passes requests to a worker, one at a time, which answers in the request itself.
type Request[R any] struct{ asked atomic.Pointer[R] }

// Ask gives the worker a request, which belongs to the worker until Asked is false. It returns false if the worker has another one. Any goroutine may call it.
func (r *Request[R]) Ask(of *R) bool { return r.asked.CompareAndSwap(nil, of) }

// Asked is true until the worker has answered. Any goroutine may call it.
func (r *Request[R]) Asked(of *R) bool { return r.asked.Load() == of }

// Requested is what the worker has to answer, nil if nothing.
func (r *Request[R]) Requested() *R { return r.asked.Load() }

// Forget withdraws a request, and ends one that is answered. The worker may be answering it, so a caller that withdraws it must neither read it nor ask it again.
func (r *Request[R]) Forget(of *R) { r.asked.CompareAndSwap(of, nil) }
