package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/internal/rdma"
)

// host is a kernel with one device, for which a read of its QPs takes a time for each.
type host struct {
	mutex sync.Mutex
	err   error
	qps   []rdma.QP
	ids   []rdma.CMID
	each  time.Duration
	busy  time.Duration // by reads of QPs
	reads int
	none  bool
}

func (h *host) set(change func(h *host)) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	change(h)
}

func (h *host) Devices() ([]rdma.Device, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.none {
		return nil, h.err
	}
	return []rdma.Device{{Index: 3, Name: "mlx5_0", Ports: 1, Protocol: "roce"}, {Index: 4, Name: "iw0", Ports: 1, Protocol: "iw"}}, h.err
}

func (h *host) Counts() (map[uint32]uint32, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return map[uint32]uint32{3: uint32(len(h.qps))}, h.err
}

func (h *host) QPs(device uint32, f func(rdma.QP)) error {
	h.mutex.Lock()
	qps, err, took := slices.Clone(h.qps), h.err, time.Duration(len(h.qps))*h.each
	h.busy += took
	h.reads++
	h.mutex.Unlock()
	if device != 3 {
		return fmt.Errorf("device %d was asked", device)
	}
	time.Sleep(took)
	for _, q := range qps {
		f(q)
	}
	return err
}

func (h *host) CMIDs(_ uint32, f func(rdma.CMID)) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, c := range h.ids {
		f(c)
	}
	return h.err
}

var sysfs = fstest.MapFS{
	"mlx5_0/ports/1/gids/0":            {Data: []byte("0000:0000:0000:0000:0000:ffff:0a01:0001\n")},
	"mlx5_0/ports/1/gid_attrs/types/0": {Data: []byte("RoCE v2\n")},
}

// gateways are what the transport reaches.
type gateways struct {
	mutex   sync.Mutex
	err     error
	renewed bool
	receiver
	tries []time.Time
}

func (g *gateways) Publish(_ context.Context, m *fleet.HintMessage) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.tries = append(g.tries, time.Now())
	if g.err == nil {
		g.take(m, time.Now())
	}
	return g.err
}

func (g *gateways) Renewed() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	was := g.renewed
	g.renewed = false
	return was
}

// has is what the gateways know now.
func (g *gateways) has() (hints []fleet.Hint) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.forget(time.Now())
	for h := range g.receiver {
		hints = append(hints, h)
	}
	slices.SortFunc(hints, compare)
	return hints
}

// start runs an agent in virtual time.
func start(t *testing.T, h *host, log io.Writer) (*gateways, func()) {
	t.Helper()
	g := &gateways{receiver: receiver{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	const interval = 250 * time.Millisecond
	go func() {
		defer close(done)
		Run(ctx, Options{Scanner: NewScanner(h, sysfs, interval), Transport: g, Interval: interval, Lifetime: 4 * time.Second, Log: zerolog.New(log)})
	}()
	return g, func() { cancel(); <-done }
}

func want(t *testing.T, when string, g *gateways, hints ...fleet.Hint) {
	t.Helper()
	if got := g.has(); !slices.Equal(got, hints) {
		t.Errorf("%s: the gateways have %v, expected %v", when, got, hints)
	}
}

// TestRun: a QP's hint is there within a second, stays as long as the QP, and is gone within a second after it. When the agent ends, hints die by
// their lifetime.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		g, stop := start(t, h, io.Discard)
		time.Sleep(10 * time.Second)
		want(t, "at first", g)
		h.set(func(h *host) { h.qps = []rdma.QP{rc(3, 17, 30), rc(3, 18, 31)}; h.qps[1].State = 1 })
		time.Sleep(time.Second)
		a, b := hint("10.1.0.1", 17, "", 30), hint("10.1.0.1", 18, "", 31)
		want(t, "after a second", g, a)
		h.set(func(h *host) { h.qps[1].State = 3 }) // the number of QPs is the same
		time.Sleep(time.Second)
		want(t, "once it is connected", g, a, b)
		for range 20 {
			time.Sleep(time.Second)
			want(t, "later", g, a, b)
		}
		h.set(func(h *host) { h.qps = h.qps[:1] })
		time.Sleep(time.Second)
		want(t, "one QP is gone", g, a)
		stop()
		time.Sleep(time.Second)
		want(t, "the agent has ended", g, a)
		time.Sleep(4 * time.Second)
		want(t, "a lifetime later", g)
	})
}

// TestRunTriesAgain: whatever fails is tried again, ever less often, said once, and then all is as before.
func TestRunTriesAgain(t *testing.T) {
	a := hint("10.1.0.1", 17, "", 30)
	t.Run("gateway", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			h := &host{qps: []rdma.QP{rc(3, 17, 30)}}
			g, stop := start(t, h, &log)
			time.Sleep(2 * time.Second)
			g.mutex.Lock()
			g.err, g.tries = errors.New("nobody answers"), nil
			g.mutex.Unlock()
			time.Sleep(10 * time.Minute)
			want(t, "without a gateway", g)
			g.mutex.Lock()
			if n := len(g.tries); n < 15 || n > 60 {
				t.Errorf("%d attempts in 10 minutes", n)
			}
			g.err = nil
			g.mutex.Unlock()
			time.Sleep(lastRetry + time.Second)
			want(t, "with a gateway again", g, a)
			stop()
			if n := strings.Count(log.String(), "nobody answers"); n != 1 {
				t.Errorf("said %d times: %s", n, &log)
			}
		})
	})
	t.Run("another gateway", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, stop := start(t, &host{qps: []rdma.QP{rc(3, 17, 30)}}, io.Discard)
			time.Sleep(2 * time.Second)
			g.mutex.Lock()
			clear(g.receiver)
			g.renewed = true
			g.mutex.Unlock()
			time.Sleep(500 * time.Millisecond)
			want(t, "after a new connection", g, a)
			stop()
		})
	})
	t.Run("kernel", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			h := &host{qps: []rdma.QP{rc(3, 17, 30)}, none: true}
			g, stop := start(t, h, &log)
			time.Sleep(2 * time.Second)
			h.set(func(h *host) { h.none, h.qps = false, append(h.qps, rc(3, 18, 31)) })
			time.Sleep(time.Second)
			b := hint("10.1.0.1", 18, "", 31)
			want(t, "a device has come", g, a, b)
			h.set(func(h *host) { h.err = fs.ErrPermission })
			time.Sleep(5 * time.Second)
			want(t, "the QPs can't be read", g)
			time.Sleep(10 * time.Minute)
			h.set(func(h *host) { h.err = nil })
			time.Sleep(lastRetry + time.Second)
			want(t, "the QPs can be read again", g, a, b)
			stop()
			for _, text := range []string{"no RDMA device", "permission denied", "can be read again"} {
				if n := strings.Count(log.String(), text); n != 1 {
					t.Errorf("%q is said %d times: %s", text, n, &log)
				}
			}
		})
	})
}

// TestScanCost: with 100,000 QPs, of which each takes a NIC 20 us, the kernel is busy for at most a twentieth of the time, and for at most a
// fifth while QPs come and go. A new QP is then found by the next read.
func TestScanCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{each: 20 * time.Microsecond}
		for n := range uint32(100_000) {
			q := rc(3, 100+n, 100+n)
			q.State = 1 // INIT: hints are not the subject
			h.qps = append(h.qps, q)
		}
		_, stop := start(t, h, io.Discard)
		time.Sleep(time.Minute)
		share := func(during time.Duration, each func()) float64 {
			var before time.Duration
			h.set(func(h *host) { before = h.busy })
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Second) {
				each()
			}
			var after time.Duration
			h.set(func(h *host) { after = h.busy })
			return float64(after-before) / float64(during)
		}
		if s := share(10*time.Minute, func() {}); s > 1.0/calm+0.005 || s < 0.02 {
			t.Errorf("calm: the kernel is busy for %.3f of the time", s)
		}
		next := uint32(1_000_000)
		if s := share(10*time.Minute, func() {
			next++
			h.set(func(h *host) {
				h.qps = append(h.qps[1:], rc(3, next, next), rc(3, next+500_000, next))[:len(h.qps)+int(next%2)]
			})
		}); s > 1.0/hurried+0.01 || s < 0.1 {
			t.Errorf("hurried: the kernel is busy for %.3f of the time", s)
		}
		stop()
	})
}
