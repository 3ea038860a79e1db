package agent

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/fleet"
)

// Transport takes hints to one or more gateways.
type Transport interface {
	// Publish sends a message, or returns why it can't be sent now.
	Publish(ctx context.Context, m *fleet.HintMessage) error
	// Renewed reports whether messages that were sent since it was last called may be lost: then all hints are sent again.
	Renewed() bool
}

// Options are the parameters of Run.
type Options struct {
	Scanner   *Scanner
	Transport Transport
	Interval  time.Duration // between two looks at the kernel
	Lifetime  time.Duration // of hints
	Log       zerolog.Logger
}

// Time between two attempts after one that failed: doubled each time, and up to half of it less, at random.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// retry is a thing that may fail.
type retry struct {
	failed time.Time // since when; the zero time: it doesn't
	pause  time.Duration
	next   time.Time
	text   string // of the last error that was logged
}

// failure notes a failure and says whether to log it: when it is another one than before.
func (r *retry) failure(err error, now time.Time) (again time.Duration, log bool) {
	if r.failed.IsZero() {
		r.failed = now
	}
	r.pause = min(max(2*r.pause, firstRetry), lastRetry)
	again = r.pause/2 + rand.N(r.pause/2)
	r.next = now.Add(again)
	log = r.text != err.Error()
	r.text = err.Error()
	return again, log
}

// success notes a success and returns how long there was none.
func (r *retry) success(now time.Time) (failed time.Duration) {
	if !r.failed.IsZero() {
		failed = now.Sub(r.failed)
	}
	*r = retry{}
	return failed
}

// run is a running agent.
type run struct {
	Options
	book             *Book
	reading, sending retry
	devices          int // RoCE devices; -1: not yet known
	left             Left
}

// Run publishes the host's hints until the context ends. Whatever fails is tried again: a host's driver may come later, and brokers and gateways
// may go and come. At the end it withdraws nothing: the host's connections go on, and the hints die by their lifetime.
func Run(ctx context.Context, o Options) {
	r := &run{Options: o, book: NewBook(time.Now(), o.Lifetime, rand.Float64), devices: -1}
	for {
		r.step(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(o.Interval - o.Interval/10 + rand.N(o.Interval/5)):
		}
	}
}

// step looks at the kernel, and publishes what is due.
func (r *run) step(ctx context.Context) {
	if now := time.Now(); !now.Before(r.reading.next) {
		if err := r.Scanner.Scan(r.use); err != nil {
			if again, log := r.reading.failure(err, now); log {
				r.Log.Warn().Err(err).Dur("again_in", again).Msg("The host's QPs can't be read. The hints that were published die by their lifetime.")
			}
		} else if failed := r.reading.success(now); failed > 0 {
			r.Log.Info().Msg("The host's QPs can be read again.")
		}
	}
	if now := time.Now(); r.reading.failed.IsZero() && !now.Before(r.sending.next) {
		r.publish(ctx, now)
	}
}

// use takes over what was read.
func (r *run) use(s *Snapshot) {
	if n := len(s.Devices); n != r.devices {
		if r.devices = n; n == 0 {
			r.Log.Warn().Msg("The host has no RDMA device that this process can see. Expected one in its network namespace; the agent waits for it.")
		} else {
			r.Log.Info().Int("devices", n).Msg("RDMA devices were found.")
		}
	}
	hints, left := Derive(s)
	if added, withdrawn := r.book.Set(hints); added+withdrawn > 0 {
		r.Log.Debug().Int("hints", len(hints)).Int("added", added).Int("withdrawn", withdrawn).Msg("Connections have changed.")
	}
	if left.TooMany != r.left.TooMany {
		r.Log.Warn().Int("left_out", left.TooMany).Int("hints", len(hints)).Msg("The host has more connections than an agent publishes. The others have no hints.")
	}
	if left.NoAddress != r.left.NoAddress && left.NoAddress > 0 {
		r.Log.Warn().Int("left_out", left.NoAddress).Msg("Connections have no hints, as their port has no RoCEv2 address but link-local ones.")
	}
	r.left = left
}

func (r *run) publish(ctx context.Context, now time.Time) {
	if r.Transport.Renewed() {
		r.book.Repeat()
	}
	messages, repeat := r.book.Next(now), false
	for i, m := range messages {
		if err := r.Transport.Publish(ctx, &m); err != nil {
			for ; i < len(messages); i++ {
				r.book.Failed(&messages[i])
			}
			if ctx.Err() != nil {
				return
			}
			if again, log := r.sending.failure(err, now); log {
				r.Log.Warn().Err(err).Dur("again_in", again).Msg("Hints can't be published. Gateways forget those that they have by their lifetime.")
			}
			if now.Sub(r.sending.failed) > r.book.Lifetime() {
				r.book.Lost()
			}
			return
		}
		r.book.Sent(&m, now)
		if failed := r.sending.success(now); failed > 0 {
			r.Log.Info().Msg("Hints are published again.")
			repeat = true
		}
	}
	if repeat {
		r.book.Repeat()
	}
}
