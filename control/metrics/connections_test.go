package metrics

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// counting counts the connections that are open at once.
type counting struct {
	net.Listener
	mutex      sync.Mutex
	open, most int
}

func (l *counting) add(n int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.open += n
	l.most = max(l.most, l.open)
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.add(1)
	return &counted{Conn: c, closed: sync.OnceFunc(func() { l.add(-1) })}, nil
}

type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// TestHalfOpen: clients that never finish a request take no more than the descriptors of maxConnections, and are disconnected, so that others are served.
func TestHalfOpen(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &counting{Listener: listener}
	server := newServer(l, source(t), log.New(io.Discard, "", 0))
	if h := &server.http; min(h.ReadTimeout, h.ReadHeaderTimeout, h.WriteTimeout, h.IdleTimeout) <= 0 || h.MaxHeaderBytes <= 0 {
		t.Errorf("not every time is limited: %+v", h)
	}
	server.http.ReadTimeout, server.http.ReadHeaderTimeout = time.Second, time.Second
	served := make(chan error, 1)
	go func() { served <- server.Serve(t.Context()) }()
	for i := range 3 * maxConnections {
		c, err := net.Dial("tcp4", server.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, []string{"", "GET /metrics HTTP/1.1\r\nHost: "}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := http.Get("http://" + server.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if answer.StatusCode != http.StatusOK || l.most != maxConnections {
		t.Errorf("%s; %d connections at once, expected %d", answer.Status, l.most, maxConnections)
	}
}
