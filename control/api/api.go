// Package api is the interface of a running gateway: HTTP with JSON over a Unix socket of mode 0660, and the client of `cnpgate show`. operations.go
// lists the requests; the routes and the OpenAPI document (docs/openapi.json) are made from that list. It never delays a worker: workers copy flows
// between bursts, a few at a time, and hints go to the flow tables as one immutable map.
//
// Memory is bounded: at most 64 connections, 8192 flows at once per request (1.4 MB), 65,536 hints, 4 KiB per request body, and 24 bytes per flow for the one
// request that measures rates.
package api

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/rdma"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/rs/zerolog"
)

const (
	maxConnections = 64
	maxHeader      = 16 << 10
	readTime       = 5 * time.Second  // for a request to arrive
	idleTime       = 5 * time.Second  // between two requests of a connection
	pieceTime      = 10 * time.Second // for a part of an answer to be made and sent
	stopTime       = time.Second      // for requests under way, once the gateway stops
)

// Server serves one gateway's API.
type Server struct {
	plane    *dataplane.Dataplane
	state    state
	flows    flows
	history  history
	hints    *hints
	sockets  sockets
	local    *local
	document []byte // OpenAPI
	log      zerolog.Logger
	http     http.Server
}

// Gateway is what the API needs of the gateway. Any goroutine may call it.
type Gateway interface {
	// Problems are the ports that don't forward, by name, and why.
	Problems() map[string]string
	// Services are those that don't work, by configuration key, and why.
	Services() map[string]string
	Counters() *report.Counters
	// Episodes are the congestion episodes of the queues, the oldest first.
	Episodes() []report.Episode
	// Config is the configuration in force.
	Config() *config.Config
	// Reload reads the configuration again. After an error the old configuration stays in force.
	Reload(ReloadRequest) (*Reloaded, error)
	// Confirm keeps the configuration of a reload that waits for it; Revert goes back to the one before.
	Confirm() (*Reloaded, error)
	Revert() (*Reloaded, error)
	// Reloads are the latest changes of the configuration in force and attempts at one, the oldest first.
	Reloads() []ReloadRecord
	// Modes are the ports' modes. SetMode changes that of a port, or of all for "", until the next reload.
	Modes() []PortMode
	SetMode(port string, observe bool) error
	// SetDrain begins or ends a drain, and Drained says how far it is.
	SetDrain(on bool)
	Drained() Drain
	// Notices say what is in force besides the configuration file.
	Notices() []string
	BGP() advertise.Status
	// RDMA is the health of RDMA connections. Nobody may change it.
	RDMA(context.Context) (*health.Report, error)
	// TraceRDMA records what passes of a connection.
	TraceRDMA(context.Context, rdma.Wanted) (*health.Trace, error)
	Identity() report.Identity
	// Fleet is the gateway's part in its fleet; nil without.
	Fleet() Fleet
	// LogLevel is one of config.LogLevels, and so is the argument of SetLogLevel.
	LogLevel() string
	SetLogLevel(level string)
}

// Open makes a server, which Move has to give a socket. Each request is logged at the level debug.
func Open(c *config.Config, plane *dataplane.Dataplane, gateway Gateway, logger zerolog.Logger) (*Server, error) {
	var ports []string
	for i := range c.Ports {
		ports = append(ports, c.Ports[i].Name)
	}
	s := &Server{
		plane: plane, log: logger, local: newLocal(), hints: newHints(func() *pairing.QPMap { return plane.Policy().QPMap }),
		state: state{gateway: gateway, ports: ports}, history: history{plane, gateway},
		flows: flows{plane: plane, gateway: gateway, ports: ports, sampling: make(chan struct{}, 1), wait: pause, ratesTime: ratesTime},
	}
	for range plane.Workers() {
		s.flows.turns = append(s.flows.turns, make(chan struct{}, 1))
	}
	operations := s.operations()
	var err error
	if s.document, err = document(operations); err != nil {
		return nil, err
	}
	s.http = http.Server{
		Handler: s.handler(operations), ErrorLog: log.New(logger, "api: ", 0), MaxHeaderBytes: maxHeader,
		ReadTimeout: readTime, ReadHeaderTimeout: readTime, WriteTimeout: pieceTime, IdleTimeout: idleTime,
	}
	s.sockets.failed = make(chan error, 1)
	return s, nil
}

// Serve answers until the context ends; then it removes the socket, gives active requests a second, and returns when all have
// ended. It must be called once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	var others sync.WaitGroup
	others.Go(func() { s.publishHints(ctx) })
	others.Go(func() { s.expireHints(ctx) })
	s.sockets.begin(&s.http)
	others.Go(s.serveLocal)
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.sockets.failed:
	}
	cancel()
	s.sockets.end()
	grace, release := context.WithTimeout(context.Background(), stopTime)
	defer release()
	if s.http.Shutdown(grace) != nil {
		_ = s.http.Close() // its errors are those of connections, which are closed anyway
	}
	s.sockets.serving.Wait()
	others.Wait()
	return err
}

// publishHints publishes changed hints to the workers, several at a time if they change fast.
func (s *Server) publishHints(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-s.hints.changed:
		}
		begin := time.Now()
		if m, err := s.hints.table(); err != nil { // put accepts no hints that contradict each other
			s.http.ErrorLog.Print("hints: ", err)
		} else {
			s.plane.Pairing().SetHints(m)
		}
		pause.Reset(max(publishEvery, 10*time.Since(begin)))
	}
}

// expireHints forgets the hints of hosts that are silent.
func (s *Server) expireHints(ctx context.Context) {
	again := time.NewTicker(expireEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-again.C:
			s.hints.expire(now)
		}
	}
}
