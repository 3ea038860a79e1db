//go:build !nodpdk

package dpdk

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// becomes waits until a condition holds.
func becomes(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// TestOffer: both sides have the same sockets, each learns of the other's end, and a gateway that was killed leaves nothing in the way.
func TestOffer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock.sockets")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	o, err := newOffer(path, []socketPair{{pipe[0], pipe[1]}, {pipe[0], pipe[1]}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := inheritFrom(path)
	if err != nil || len(h.pairs) != 2 {
		t.Fatalf("%+v, %v", h, err)
	}
	if _, err := unix.Write(h.pairs[1].tx, []byte{7}); err != nil {
		t.Error(err)
	}
	if b := make([]byte, 1); true {
		if n, err := unix.Read(pipe[0], b); n != 1 || b[0] != 7 {
			t.Errorf("read %d bytes, %v: %v", n, b, err)
		}
	}
	if h.take(1, 2) != nil || h.take(1, 1) != nil {
		t.Error("pipes are taken for the sockets of an interface")
	}
	h.close()
	becomes(t, "the gateway keeps the connection of a standby that has ended", func() bool {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		return len(o.takes) == 0
	})
	if h, err = inheritFrom(path); err != nil {
		t.Fatal(err)
	}
	if !o.close() {
		t.Error("the gateway that ends doesn't know that another one has its sockets")
	}
	becomes(t, "the other side doesn't see the end", func() bool { return h.ended.Load() != nil })
	if h.stale() {
		t.Error("stale at once")
	}
	late := time.Now().Add(-mostStale - time.Second)
	h.ended.Store(&late)
	if !h.stale() {
		t.Error("not stale after long")
	}
	h.close()
	if _, err := inheritFrom(path); err == nil {
		t.Error("an offer that was closed can be taken")
	}
	if o, err = newOffer(path, []socketPair{{pipe[0], pipe[1]}}); err != nil {
		t.Fatal(err)
	}
	o.version++
	if h, err := inheritFrom(path); err == nil {
		t.Errorf("%+v of another version", h)
	}
	becomes(t, "the gateway keeps the connection of another version", func() bool {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		return len(o.takes) == 0
	})
	if o.close() {
		t.Error("taken by nobody")
	}
}

// TestOfferEnds: whenever a standby asks, a gateway that ends its offer knows whether that one has the sockets: if not, it drops what waits in them.
func TestOfferEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock.sockets")
	const rounds = 200
	for round := range rounds {
		o, err := newOffer(path, []socketPair{{0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *offeredSockets)
		go func() {
			h, _ := inheritFrom(path)
			got <- h
		}()
		for range round {
			runtime.Gosched()
		}
		taken := o.close()
		if h := <-got; h != nil {
			if h.close(); !taken {
				t.Fatalf("round %d: a standby got the sockets, and the gateway doesn't know", round)
			}
		}
	}
}

// TestOfferHangs: a gateway that hangs doesn't block the standby.
func TestOfferHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock.sockets")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := inheritFrom(path)
		answered <- err
	}()
	select {
	case err := <-answered:
		if err == nil {
			t.Error("sockets of a gateway that hangs")
		}
	case <-time.After(10 * time.Second):
		t.Error("the standby waits for a gateway that hangs")
	}
}
