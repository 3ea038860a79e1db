package control

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/telemetry"
)

const (
	firstAgain = 50 * time.Millisecond // until a service that has failed is tried again: the sockets of a killed process close some time after its locks
	lastAgain  = 10 * time.Second      // at most, after doubling
	settleTime = time.Second           // how long a start or a reload waits to learn whether its services work
)

// serve does the work of a service until the context ends. It calls note with nil once it works, and with the reason whenever it doesn't. After an error, which is
// noted too, it is called again.
type serve func(ctx context.Context, note func(error)) error

// services are what a gateway does besides forwarding: it answers at addresses, exchanges routes, exports records, writes files. Each has the name of its configuration
// key. One that fails is tried again for ever, with backoff: forwarding depends on none of them. Any goroutine may call its methods.
type services struct {
	log   *zerolog.Logger
	mutex sync.Mutex
	all   map[string]*service
}

type service struct {
	settings any
	cancel   context.CancelFunc
	tried    chan struct{} // closed once it is known whether the service works
	done     chan struct{}

	mutex   sync.Mutex
	noted   bool
	worked  bool   // since it was started last
	problem string // why it doesn't work; "" if it does
}

// use runs a service with these settings, in place of the one of this name with others, which ends first. If it isn't wanted, that one only ends. The calls for one
// name come one after the other.
func (s *services) use(name string, wanted bool, settings any, run serve) {
	before := s.list()[name]
	if before != nil && wanted && reflect.DeepEqual(before.settings, settings) {
		return
	}
	if before != nil {
		before.end()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !wanted {
		delete(s.all, name)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &service{settings: settings, cancel: cancel, tried: make(chan struct{}), done: make(chan struct{})}
	if s.all == nil {
		s.all = map[string]*service{}
	}
	s.all[name] = one
	go one.run(ctx, s.log.With().Str("service", name).Logger(), run)
}

// run serves until the context ends.
func (one *service) run(ctx context.Context, log zerolog.Logger, run serve) {
	defer close(one.done)
	again := firstAgain
	for {
		err := run(ctx, func(err error) { one.note(log, err) })
		if ctx.Err() != nil {
			return
		}
		if one.hasWorked() {
			again = firstAgain
		}
		one.note(log, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
		again = min(2*again, lastAgain)
	}
}

// hasWorked reports whether the service has worked since the last call.
func (one *service) hasWorked() bool {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	worked := one.worked
	one.worked = false
	return worked
}

// note notes whether the service works, and logs when that changes. The present reason is for the health: it may have the time or a port in it.
func (one *service) note(log zerolog.Logger, err error) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	before := one.problem
	one.worked = one.worked || err == nil
	if one.problem = ""; err != nil {
		one.problem = err.Error()
	}
	switch {
	case err != nil && before == "":
		log.Error().Err(err).Msg("A service doesn't work. It is tried again. Forwarding doesn't depend on it.")
	case err == nil && before != "":
		log.Info().Msg("The service works again.")
	}
	if !one.noted {
		one.noted = true
		close(one.tried)
	}
}

func (one *service) end() {
	one.cancel()
	<-one.done
}

// settle waits until it is known of each service whether it works, for settleTime at most.
func (s *services) settle() {
	late := time.After(settleTime)
	for _, one := range s.list() {
		select {
		case <-one.tried:
		case <-one.done:
		case <-late:
			return
		}
	}
}

// end ends all services.
func (s *services) end() {
	var ending sync.WaitGroup
	for name, one := range s.list() {
		ending.Go(one.end)
		s.mutex.Lock()
		delete(s.all, name)
		s.mutex.Unlock()
	}
	ending.Wait()
}

func (s *services) list() map[string]*service {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return maps.Clone(s.all)
}

// problems are the services that don't work, and why.
func (s *services) problems() map[string]string {
	out := map[string]string{}
	for name, one := range s.list() {
		one.mutex.Lock()
		if one.problem != "" {
			out[name] = one.problem
		}
		one.mutex.Unlock()
	}
	return out
}

// addTo adds the metric of the services.
func (s *services) addTo(v telemetry.Values) {
	problems := s.problems()
	for _, name := range slices.Sorted(maps.Keys(s.list())) {
		up := uint64(1)
		if problems[name] != "" {
			up = 0
		}
		v.Add(telemetry.ServiceUp, name, up)
	}
}
