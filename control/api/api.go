// Package api is how a running gateway is asked and told: HTTP with JSON over a Unix socket of mode 0660, and the client of
// `cnpgate show`. GET /v1/health says whether all ports forward; GET /v1/flows reads the flows of all workers; PUT, GET and DELETE /v1/hints keep what host agents say of QP
// pairs. It never holds a worker up: flows come as copies that a worker makes between bursts, a few at a time, and hints go to
// the flow tables as one immutable map.
//
// Memory is bounded: at most 64 connections, 1024 flows of each request at once, 65,536 hints, 4 KiB of a request's body.
package api

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
)

const (
	maxConnections = 64
	maxHeader      = 16 << 10
	readTime       = 5 * time.Second  // for a request to arrive
	idleTime       = 5 * time.Second  // between two requests of a connection
	pieceTime      = 10 * time.Second // for a piece of an answer to be ready and taken
	stopTime       = time.Second      // for requests under way, once the gateway stops
)

// Server serves one gateway's API.
type Server struct {
	plane  *dataplane.Dataplane
	ports  []string
	turns  []chan struct{} // by worker: who may ask it for flows holds the one token
	hints  *hints
	socket *socket
	// problems are the ports that don't forward, and why; nil: nobody watches.
	problems func() map[string]string
	http     http.Server
}

// Open begins to listen where the configuration says; nobody is answered before Serve. Errors that no request can be told go to the
// log.
func Open(c *config.Config, plane *dataplane.Dataplane, log *log.Logger) (*Server, error) {
	s := &Server{plane: plane, hints: newHints(c.QPMap)}
	for i := range c.Ports {
		s.ports = append(s.ports, c.Ports[i].Name)
	}
	for range plane.Workers() {
		s.turns = append(s.turns, make(chan struct{}, 1))
	}
	s.http = http.Server{
		Handler: s.handler(), ErrorLog: log, MaxHeaderBytes: maxHeader,
		ReadTimeout: readTime, ReadHeaderTimeout: readTime, WriteTimeout: pieceTime, IdleTimeout: idleTime,
	}
	var err error
	s.socket, err = listen(c.Management.Socket)
	return s, err
}

// Serve answers until the context ends; then it removes the socket, gives requests under way a second, and returns when all are
// over. It must be called once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	var others sync.WaitGroup
	others.Go(func() { s.publishHints(ctx) })
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(limit(s.socket.listener, maxConnections)) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	cancel()
	s.socket.remove()
	grace, release := context.WithTimeout(context.Background(), stopTime)
	defer release()
	if s.http.Shutdown(grace) != nil {
		_ = s.http.Close() // its errors are the connections', which nobody waits for any more
	}
	if err == nil {
		<-served
	}
	others.Wait()
	return err
}

// publishHints hands changed hints to the workers, several at a time when they come fast.
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
		if m, err := s.hints.table(); err != nil { // put lets none in that contradict each other
			s.http.ErrorLog.Print("hints: ", err)
		} else {
			s.plane.Pairing().SetHints(m)
		}
		pause.Reset(publishEvery)
	}
}
