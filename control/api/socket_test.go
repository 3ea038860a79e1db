package api

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSocketMode: 0660 whatever the umask is, and never wider, not even before the mode is set a second time.
func TestSocketMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		syscall.Umask(0)
		path := filepath.Join(t.TempDir(), "s")
		syscall.Umask(umask)
		s, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		if m := mode(t, path); m != fs.ModeSocket|0o660 {
			t.Errorf("umask %04o: mode %v", umask, m)
		}
		s.remove()
		check(t, s.listener.Close())

		l, err := (&net.ListenConfig{Control: narrow}).Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if m := mode(t, path); m != fs.ModeSocket|0o660&^fs.FileMode(umask) {
			t.Errorf("umask %04o: mode %v at first", umask, m)
		}
		check(t, l.Close())
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// leave makes a socket file that nobody listens at.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	check(t, l.Close())
}

// TestSocketPlace: what may be where the socket is to be.
func TestSocketPlace(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, directory string)
		path    string
		want    string // of the error; "" for none
	}{
		{"nothing", func(*testing.T, string) {}, "s", ""},
		{"no directory", func(*testing.T, string) {}, "new/s", ""},
		{"no directory twice", func(*testing.T, string) {}, "new/new/s", "mkdir "},
		{"a dead gateway's", func(t *testing.T, d string) { leave(t, filepath.Join(d, "s")) }, "s", ""},
		{"a file", func(t *testing.T, d string) { check(t, os.WriteFile(filepath.Join(d, "s"), []byte("mine"), 0o600)) }, "s",
			"s exists and is not a socket (-rw-------); expected no file, or the socket of an earlier gateway"},
		{"a directory", func(t *testing.T, d string) { check(t, os.Mkdir(filepath.Join(d, "s"), 0o700)) }, "s", "is not a socket (drwx------)"},
		{"a link to a dead gateway's", func(t *testing.T, d string) {
			leave(t, filepath.Join(d, "other"))
			check(t, os.Symlink("other", filepath.Join(d, "s")))
		}, "s", "is not a socket (L"},
		{"a file for a directory", func(t *testing.T, d string) { check(t, os.WriteFile(filepath.Join(d, "new"), nil, 0o600)) }, "new/s", "not a directory"},
		{"a living gateway's", func(t *testing.T, d string) {
			s, err := Listen(filepath.Join(d, "s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := os.Lstat(s.path); err != nil {
					t.Errorf("the living one's socket is gone: %v", err)
				}
				check(t, s.listener.Close())
			})
		}, "s", "another process answers at "},
		{"a locked directory", func(t *testing.T, d string) {
			f, err := os.Open(d)
			if err != nil {
				t.Fatal(err)
			}
			check(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			t.Cleanup(func() { check(t, f.Close()) })
		}, "s", "is locked by another process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			directory := t.TempDir()
			c.prepare(t, directory)
			s, err := Listen(filepath.Join(directory, c.path))
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if err != nil {
				if info, err := os.Lstat(filepath.Join(directory, "s")); c.name == "a file" && (err != nil || info.Size() != 4) {
					t.Errorf("the file is now %v, %v", info, err)
				}
				return
			}
			if m := mode(t, s.path); m != fs.ModeSocket|0o660 {
				t.Errorf("mode %v", m)
			}
			s.remove()
			if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket is left: %v", err)
			}
			check(t, s.listener.Close())
		})
	}
}

// TestSocketOfAnother: a gateway doesn't remove what has taken its socket's place.
func TestSocketOfAnother(t *testing.T) {
	s, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, os.Rename(s.path, s.path+".old")) // so that its inode stays in use
	leave(t, s.path)
	s.remove()
	if _, err := os.Lstat(s.path); err != nil {
		t.Error(err)
	}
	check(t, s.listener.Close())
}

// TestServerEnds: when its context ends, or when its listener fails; the socket is gone, and idle clients don't hold it up.
func TestServerEnds(t *testing.T) {
	g := newGate(t, 1)
	g.run(0)
	g.want(t, "GET", FlowsPath, "", 200, `{"flows":[`) // and the connection stays open
	g.cancel()
	if err := <-g.served; err != nil {
		t.Error(err)
	}
	g.served <- nil // for the end of the test
	if _, err := os.Lstat(g.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}

	broken := newGate(t, 1)
	check(t, broken.server.sockets.at.listener.Close())
	if err := <-broken.served; err == nil {
		t.Error("no error from a listener that is closed")
	}
	broken.served <- nil
}
