package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"
)

const (
	socketMode    = 0o660
	directoryMode = 0o755
	probeTime     = time.Second           // for another gateway to accept a connection
	lockTries     = 100                   // for another gateway that is starting
	lockPause     = 10 * time.Millisecond // between two tries
)

// sockets is the socket that a server has now.
type sockets struct {
	sync.Mutex
	at      *Socket      // nil: none
	http    *http.Server // nil: it doesn't serve
	serving sync.WaitGroup
	failed  chan error // of the socket that the server has
}

// begin answers at the socket.
func (s *sockets) begin(h *http.Server) {
	s.Lock()
	defer s.Unlock()
	s.http = h
	s.serve()
}

// serve is called with the mutex locked.
func (s *sockets) serve() {
	at, h := s.at, s.http
	if at == nil || h == nil {
		return
	}
	s.serving.Go(func() {
		err := h.Serve(netutil.LimitListener(at.listener, maxConnections))
		s.Lock()
		defer s.Unlock()
		if s.at == at && s.http != nil {
			s.failed <- err // once: without a socket, nothing fails again
			s.http = nil
		}
	})
}

// end removes the socket. The server then closes the listener.
func (s *sockets) end() {
	s.Lock()
	defer s.Unlock()
	s.http = nil
	if s.at != nil {
		s.at.remove()
	}
}

// Move makes the server answer at a socket in place of the one that it has, nil for none. Requests that it has accepted get their answers.
func (s *Server) Move(to *Socket) {
	m := &s.sockets
	m.Lock()
	defer m.Unlock()
	from := m.at
	m.at = to
	m.serve()
	if from != nil {
		from.Close()
	}
}

// Socket is a listening Unix socket and its file.
type Socket struct {
	listener *net.UnixListener
	path     string
	file     fs.FileInfo
}

// LinkOf is the path of a link to the socket of the gateway that runs a configuration file. The file may meanwhile want another socket than the gateway has.
func LinkOf(config string) string {
	if absolute, err := filepath.Abs(config); err == nil {
		config = absolute
	}
	return filepath.Join(filepath.Dir(DefaultSocket), fmt.Sprintf("of-%x", sha256.Sum256([]byte(config)))[:len("of-")+16])
}

// Link makes the link to the gateway's socket, where there is a directory for it that the gateway may write to.
func (s *Server) Link(config string) {
	s.sockets.Lock()
	defer s.sockets.Unlock()
	link := LinkOf(config)
	_ = os.Remove(link)
	if s.sockets.at == nil {
		return
	}
	if path, err := filepath.Abs(s.sockets.at.path); err == nil {
		_ = os.Symlink(path, link)
	}
}

// Listen makes a socket, at which clients wait until a server moves to it. It removes the socket of an earlier gateway, but not a socket at which a
// process answers, nor any other kind of file.
func Listen(path string) (*Socket, error) {
	directory := filepath.Dir(path)
	if err := os.Mkdir(directory, directoryMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w; expected a directory for the socket %s: make it, or run as a user who may", err, filepath.Base(path))
	}
	unlock, err := lock(directory)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := clearAway(path); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{Control: narrow}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w; expected a directory that the gateway may make a socket in", err)
	}
	s := &Socket{listener: l.(*net.UnixListener), path: path}
	s.listener.SetUnlinkOnClose(false) // by then the file may be another gateway's
	if err = os.Chmod(path, socketMode); err == nil {
		s.file, err = os.Lstat(path)
	}
	if err != nil {
		_ = s.listener.Close()
		return nil, fmt.Errorf("the mode of the socket: %w", err)
	}
	return s, nil
}

// narrow sets the mode of a socket that has no file yet. Linux applies it, less the umask, when it makes the file, so that the file is
// never open to everyone. Changing the process's umask would affect files that other goroutines make at the same time.
func narrow(_, _ string, c syscall.RawConn) error {
	var err error
	if outer := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), socketMode) }); outer != nil {
		return outer
	}
	return err
}

// lock prevents a gateway from removing another gateway's socket that exists already but doesn't listen yet.
func lock(directory string) (unlock func(), err error) {
	d, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		if err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { _ = d.Close() }, nil
		}
		time.Sleep(lockPause)
	}
	_ = d.Close()
	return nil, fmt.Errorf("%s is locked by another process (%w); expected a directory of the gateway's own", directory, err)
}

// clearAway removes the socket of a gateway that has ended.
func clearAway(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is not a socket (%v); expected no file, or the socket of an earlier gateway: remove it, or choose another path",
			path, info.Mode())
	}
	c, err := net.DialTimeout("unix", path, probeTime)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("another process answers at %s; expected no other gateway with this socket: stop it, or choose another path", path)
	case !errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%s may be another gateway's: %w", path, err)
	}
	return os.Remove(path)
}

// remove removes the file, unless it belongs to another gateway by now. It is called before the listener is closed: until then clients
// get an answer, and other gateways see that the socket is in use.
func (s *Socket) remove() {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
		_ = os.Remove(s.path) // the next gateway removes a file that is left
	}
}

// Close removes the socket and refuses further connections.
func (s *Socket) Close() {
	s.remove()
	_ = s.listener.Close() // nothing is left to do
}
