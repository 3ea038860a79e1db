package rdmanet

// never is the time of what does not happen, ns.
const never = int64(1) << 62

const (
	usec = int64(1e3)
	msec = int64(1e6)
)

// clock runs functions in the order of their times; those of the same time in the order in which they were added.
type clock struct {
	now    int64 // ns
	order  uint64
	events []event // a binary heap
}

type event struct {
	at    int64
	order uint64
	do    func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// at runs a function at a time, or now if that is past.
func (c *clock) at(t int64, do func()) {
	c.order++
	c.events = append(c.events, event{max(t, c.now), c.order, do})
	h := c.events
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// step runs the next function; it reports false if there is none.
func (c *clock) step() bool {
	h := c.events
	if len(h) == 0 {
		return false
	}
	first, n := h[0], len(h)-1
	h[0], h[n] = h[n], event{}
	h = h[:n]
	c.events = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	c.now = first.at
	first.do()
	return true
}
