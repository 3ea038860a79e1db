// Package webserver serves the page of a running gateway, or of a recording, over HTTP: the built files of package web, the answers of the API that only
// read, and what changes as server-sent events. It asks the gateway through the API's client, so that a page and `cnpgate show` have one source.
//
// Whatever browsers do, the gateway is asked at a fixed pace, for all of them together, and only while a page is open; 4 further requests at a time read
// lists. Memory is bounded: 64 connections with headers of at most 8 KiB, 16 pages with 32 waiting events each, which share the events' text.
package webserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cnpgate/cnpgate/web"
)

const (
	maxConnections = 64
	maxHeader      = 8 << 10
	requestTime    = 5 * time.Second
	answerTime     = 30 * time.Second // for an answer, but not for events
)

// Source is what the pages show: a gateway, or a recording.
type Source interface {
	// entry is the page, with its state, to which "/" leads; "" for the live view.
	entry() string
	// routes adds the paths of the source.
	routes(get func(path string, h http.HandlerFunc))
	// run works until the context ends.
	run(ctx context.Context)
}

// Server serves the pages of one source.
type Server struct {
	active   atomic.Pointer[active]
	source   Source
	listener net.Listener
	http     http.Server
}

// active are the settings in force. What was admitted by them ends with them.
type active struct {
	*Settings
	until context.Context
	end   context.CancelFunc
}

// Use replaces the certificate and the token. The address stays.
func (s *Server) Use(settings *Settings) {
	now, before := &active{Settings: settings}, s.active.Load()
	if before != nil && settings.equal(before.Settings) {
		return
	}
	now.until, now.end = context.WithCancel(context.Background())
	s.active.Store(now)
	if before != nil {
		before.end()
	}
}

// accept makes a connection one with TLS, if the settings in force have a certificate.
func (s *Server) accept(c net.Conn) net.Conn {
	certificate := s.active.Load().certificate
	if certificate == nil {
		return c
	}
	return tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
}

// listener accepts connections as the settings in force say.
type listener struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.server.accept(c), nil
}

// Open listens; requests wait until Serve answers them. Errors outside of requests go to the log.
func Open(s *Settings, source Source, logger *log.Logger) (*Server, error) {
	files, err := web.Files()
	if err != nil {
		return nil, err
	}
	return open(s, source, files, logger)
}

func open(s *Settings, source Source, files fs.FS, logger *log.Logger) (*Server, error) {
	network := "tcp6"
	if a, err := netip.ParseAddrPort(s.listen); err == nil && a.Addr().Is4() {
		network = "tcp4" // with "tcp" and 0.0.0.0, Go also listens on all IPv6 addresses
	}
	l, err := net.Listen(network, s.listen)
	if err != nil {
		return nil, err
	}
	o := &Server{source: source}
	o.listener = listener{netutil.LimitListener(l, maxConnections), o}
	o.Use(s)
	o.http = http.Server{
		Handler: o.guard(o.handler(files)), ErrorLog: logger, MaxHeaderBytes: maxHeader,
		ReadTimeout: requestTime, ReadHeaderTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: requestTime,
	}
	return o, nil
}

// handler serves the files to anyone, and what the source has to those who have the token.
func (s *Server) handler(files fs.FS) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler(files))
	for path, name := range map[string]string{"/{$}": "live.html", "/index.html": "index.html"} { // a file server would redirect the one to the other
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if entry := s.source.entry(); entry != "" && r.URL.Path == "/" {
				http.Redirect(w, r, "/"+entry, http.StatusFound)
				return
			}
			text, err := fs.ReadFile(files, name)
			if err != nil {
				refuse(w, http.StatusNotFound, err)
				return
			}
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
		})
	}
	s.source.routes(func(path string, h http.HandlerFunc) { mux.HandleFunc(path, s.private(h)) })
	return mux
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL is the address of the page.
func (s *Server) URL() string {
	if s.active.Load().certificate != nil {
		return "https://" + s.Address() + "/"
	}
	return "http://" + s.Address() + "/"
}

// Entry is the address at which a browser begins.
func (s *Server) Entry() string { return s.URL() + s.source.entry() }

// Close refuses all requests. It takes the place of Serve.
func (s *Server) Close() { _ = s.listener.Close() }

// Serve answers until the context ends. It must be called once.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		s.source.run(ctx)
		close(done)
	}()
	defer func() {
		cancel()
		<-done
	}()
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() }) // pages ask again
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// refuse answers with an error, in the API's form.
func refuse(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"error": err.Error()})
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the page may have gone
}
