package api

import (
	"context"
	"net"
	"net/http"
	"sync"

	"golang.org/x/net/netutil"
)

// maxLocal bounds the connections within the process. They take none of those of the socket.
const maxLocal = 16

// local is a listener within the process.
type local struct {
	connections chan net.Conn
	done        chan struct{}
	close       func()
}

func newLocal() *local {
	l := &local{connections: make(chan net.Conn), done: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.done) })
	return l
}

// Accept implements net.Listener.
func (l *local) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *local) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *local) Addr() net.Addr { return &net.UnixAddr{Name: "in-process", Net: "unix"} }

func (l *local) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.connections <- there:
		return here, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Local is a client within the gateway's process. It needs no socket.
func (s *Server) Local() *Client {
	c := &Client{socket: "this process"}
	c.http.Transport = &http.Transport{DialContext: s.local.dial, ResponseHeaderTimeout: headerTime, DisableKeepAlives: true}
	return c
}

// serveLocal answers within the process until the server is shut down.
func (s *Server) serveLocal() { _ = s.http.Serve(netutil.LimitListener(s.local, maxLocal)) }
