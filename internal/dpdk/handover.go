//go:build !nodpdk

package dpdk

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A gateway offers the packet sockets of its interfaces to the one that stands by, at a Unix socket beside the lock. A socket that both have outlives
// either, with the frames that wait in it, and gives each frame to only one of them: whatever ends the first gateway, no frame that it hasn't received is
// lost or doubled.

// socketsVersion changes with the options of the packet sockets: a gateway uses only those that it would have made itself.
const socketsVersion = 1

// mostSockets is how many sockets one message of the kernel's can pass on (SCM_MAX_FD).
const mostSockets = 253

// answerTime is how long a standby waits for the sockets. A gateway that hangs must not block it, and its watchdog expects it to go on.
const answerTime = 100 * time.Millisecond

// mostStale is for how long frames may wait in sockets that no gateway reads. Later they do more harm than good: their senders have sent them again, and
// another gateway may have forwarded them, from sockets of its own.
const mostStale = 2 * time.Second

// offer passes on an interface's sockets.
type offer struct {
	listener *net.UnixListener
	sockets  []int
	version  byte
	ended    sync.WaitGroup

	mutex  sync.Mutex
	takes  []*net.UnixConn
	closed bool
}

// offerPath is where the gateway that has an interface's lock offers its sockets.
func offerPath(lock string) string { return lock + ".sockets" }

// newOffer offers sockets to processes of the same user.
func newOffer(path string, pairs []socketPair) (*offer, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // of a gateway that was killed: only the owner of the lock comes here
		return nil, err
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	o := &offer{listener: l, version: socketsVersion}
	for _, s := range pairs {
		o.sockets = append(o.sockets, s.rx, s.tx)
	}
	o.ended.Go(o.serve)
	return o, nil
}

func (o *offer) serve() {
	for {
		c, err := o.listener.AcceptUnix()
		if err != nil {
			return // close has closed it
		}
		if !o.give(c) {
			_ = c.Close()
		}
	}
}

// give passes on the sockets. The connection stays open: its end says to either side that the other one has gone.
func (o *offer) give(c *net.UnixConn) bool {
	if !sameUser(c) {
		return false
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.closed {
		return false
	}
	if _, _, err := c.WriteMsgUnix([]byte{o.version}, unix.UnixRights(o.sockets...), nil); err != nil {
		return false
	}
	o.takes = append(o.takes, c)
	o.ended.Go(func() {
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.takes = slices.DeleteFunc(o.takes, func(other *net.UnixConn) bool { return other == c })
	})
	return true
}

// sameUser reports whether root or this process's user is at the other end.
func sameUser(c *net.UnixConn) (same bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		same = err == nil && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
	})
	return same
}

// close ends the offer, before the sockets are read for the last time, closed or replaced. Those that have them ask again then. It reports whether another process has
// them: nobody gets them later. A nil offer has ended.
func (o *offer) close() (taken bool) {
	if o == nil {
		return false
	}
	_ = o.listener.Close() // removes the path
	o.mutex.Lock()
	o.closed, taken = true, len(o.takes) > 0
	for _, c := range o.takes {
		_ = c.Close()
	}
	o.mutex.Unlock()
	o.ended.Wait()
	return taken
}

// offeredSockets are those of an interface that another gateway has offered.
type offeredSockets struct {
	pairs []socketPair
	giver *net.UnixConn
	ended atomic.Pointer[time.Time] // when the giver ended, or ceased to use these sockets; nil: it uses them
}

// stale reports whether the frames that wait in the sockets may be too old.
func (h *offeredSockets) stale() bool {
	ended := h.ended.Load()
	return ended != nil && time.Since(*ended) > mostStale
}

// inherit asks the gateway that uses an interface for its sockets.
func inherit(iface string) (*offeredSockets, error) {
	path, err := resource{interfaceResource, iface}.lockPath("")
	if err != nil {
		return nil, err
	}
	return inheritFrom(offerPath(path))
}

func inheritFrom(path string) (*offeredSockets, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	h := &offeredSockets{giver: c}
	version, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*mostSockets))
	_ = c.SetReadDeadline(time.Now().Add(answerTime))
	n, size, _, _, err := c.ReadMsgUnix(version, rights)
	_ = c.SetReadDeadline(time.Time{})
	var sockets []int
	if err == nil {
		sockets, err = socketsOf(rights[:size])
	}
	for i := 0; i+1 < len(sockets); i += 2 {
		h.pairs = append(h.pairs, socketPair{sockets[i], sockets[i+1]})
	}
	switch {
	case err == nil && (n != 1 || version[0] != socketsVersion || len(sockets) == 0 || len(sockets)%2 != 0):
		err = fmt.Errorf("%d sockets of version %v were offered, expected pairs of version %d", len(sockets), version[:n], socketsVersion)
		fallthrough
	case err != nil:
		if len(sockets)%2 != 0 { // in no pair
			_ = unix.Close(sockets[len(sockets)-1])
		}
		h.close()
		return nil, err
	}
	go func() {
		_, _ = io.Copy(io.Discard, c)
		now := time.Now()
		h.ended.Store(&now)
	}()
	return h, nil
}

// socketsOf are the sockets in a control message.
func socketsOf(b []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("%d control messages, expected one (%w)", len(messages), err)
	}
	return unix.ParseUnixRights(&messages[0])
}

// take is the sockets, if they are still those of the interface with this index, as many as there are workers, and not stale. They belong to the caller then.
func (h *offeredSockets) take(index, workers int) []socketPair {
	if h == nil || len(h.pairs) != workers || h.stale() {
		return nil
	}
	for _, s := range h.pairs {
		if interfaceOf(s.rx) != index || interfaceOf(s.tx) != index {
			return nil
		}
	}
	pairs := h.pairs
	h.pairs = nil
	return pairs
}

// close closes the sockets that nobody has taken.
func (h *offeredSockets) close() {
	if h == nil {
		return
	}
	_ = h.giver.Close()
	_ = closePairs(h.pairs)
	h.pairs = nil
}

// interfaceOf is the index of the interface to which a packet socket is bound, 0 or less if it is to none.
func interfaceOf(fd int) int {
	a, err := unix.Getsockname(fd)
	l, ok := a.(*unix.SockaddrLinklayer)
	if err != nil || !ok {
		return 0
	}
	return l.Ifindex
}
