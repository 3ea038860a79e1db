//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/internal/netif"
)

// resourceKind is a kind of resource that only one port can use, of this gateway or another.
type resourceKind string

const (
	interfaceResource resourceKind = "interface"
	pciResource       resourceKind = "PCI device"
	tapResource       resourceKind = "tap interface"
	serverResource    resourceKind = "served socket"
	clientResource    resourceKind = "socket"
)

// resource is one such thing.
type resource struct {
	kind resourceKind
	name string
}

func (r resource) String() string { return string(r.kind) + " " + r.name }

// key is the same for all names of a resource: an interface's key has its index, so it survives renaming.
func (r resource) key() (string, error) {
	switch r.kind {
	case interfaceResource:
		n, err := netif.Read(r.name)
		if err != nil {
			return "", err
		}
		return inNamespace("interface", strconv.Itoa(n.Index))
	case tapResource:
		return inNamespace("tap", r.name)
	case serverResource, clientResource:
		path, err := filepath.Abs(r.name)
		return strings.ReplaceAll(string(r.kind), " ", "-") + "-" + url.PathEscape(path), err
	default:
		return "pci-" + r.name, nil
	}
}

// inNamespace returns a key for the network namespace of the calling thread.
func inNamespace(kind, name string) (string, error) {
	var s unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &s); err != nil {
		return "", fmt.Errorf("reading the network namespace (/proc/thread-self/ns/net): %w", err)
	}
	return fmt.Sprintf("%s-%d-%s", kind, s.Ino, url.PathEscape(name)), nil
}

// lock prevents that two gateways use the same resource. It is a file with the process ID that is locked (flock) while the process lives.
// Only its owner may open it, since anyone who can open it can lock it.
type lock struct{ file *os.File }

// lockPath is the lock file of a resource, or another one beside it with a prefix.
func (r resource) lockPath(prefix string) (string, error) {
	key, err := r.key()
	if err != nil {
		return "", err
	}
	dir, err := lockDirectory()
	if err != nil {
		return "", fmt.Errorf("%s can't be locked: %w", r, err)
	}
	return filepath.Join(dir, prefix+key+".lock"), nil
}

// lockInterface locks a kernel interface by its index.
func lockInterface(name string) (*lock, error) {
	return lockResource(resource{interfaceResource, name})
}

func lockResource(r resource) (*lock, error) {
	path, err := r.lockPath("")
	if err != nil {
		return nil, err
	}
	return takeLock(path, r.String())
}

// lockAll locks all or nothing.
func lockAll(resources []resource) (locks []*lock, err error) {
	for _, r := range resources {
		l, err := lockResource(r)
		if err != nil {
			return nil, errors.Join(err, releaseAll(locks))
		}
		locks = append(locks, l)
	}
	return locks, nil
}

func releaseAll(locks []*lock) error {
	var errs []error
	for _, l := range locks {
		errs = append(errs, l.release())
	}
	return errors.Join(errs...)
}

// lockDirectories are the places for lock files, the best first.
func lockDirectories() []string {
	dirs := []string{"/run/cnpgate"}
	if dir, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":"); dir != "" { // systemd's
		dirs = append(dirs, dir)
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "cnpgate"))
	}
	return append(dirs, filepath.Join(os.TempDir(), fmt.Sprintf("cnpgate-%d", os.Getuid())))
}

// lockDirectory returns the directory of lock files: the first one that exists or can be made, and that only this user or root can write.
// For root that is always the first.
func lockDirectory() (string, error) {
	tried := lockDirectories()
	for _, dir := range tried {
		_ = os.Mkdir(dir, 0o755)
		var s unix.Stat_t
		if unix.Lstat(dir, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR && s.Mode&0o002 == 0 && (s.Uid == 0 || s.Uid == uint32(os.Getuid())) &&
			unix.Access(dir, unix.W_OK|unix.X_OK) == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("there is no directory for lock files: expected one of %s that this user can write and others can't: make the first one",
		strings.Join(tried, ", "))
}

// checkFree returns an inUseError if another process has locked one of a device's resources. It takes no lock and needs no rights: a gateway that has a
// PCI device must be named even though the device can't be looked at then.
func checkFree(d device) error {
	for _, r := range d.resources() {
		key, err := r.key()
		if err != nil {
			return err
		}
		for _, dir := range lockDirectories() {
			if pid := lockHolder(filepath.Join(dir, key+".lock"), "/proc/locks"); pid > 0 {
				return &inUseError{r.String(), fmt.Sprintf("the gateway with process ID %d", pid)}
			}
		}
	}
	return nil
}

// lockHolder returns the process that has locked a file by flock, 0 if there is none, by the kernel's list of locks (proc_locks(5)).
func lockHolder(path, locks string) int {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil {
		return 0
	}
	text, _ := os.ReadFile(locks)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != fmt.Sprintf("%02x:%02x:%d", unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}

// inUseError is a lock that another process holds.
type inUseError struct{ what, holder string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("%s is in use by %s: stop that one first, or configure another device", e.what, e.holder)
}

func takeLock(path, what string) (*lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, unix.EACCES) {
			return nil, fmt.Errorf("%s can't be locked: %w: it may be in use by a gateway of another user: stop that one first, and remove the file", what, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s can't be locked: %w", what, err)
		}
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil && inPlace(f, path):
			if err := writePID(f); err != nil {
				return nil, errors.Join(fmt.Errorf("%s can't be locked: %w", what, err), f.Close())
			}
			return &lock{f}, nil
		case err == nil: // its holder has just removed it: try again with a new file
			_ = f.Close()
		case errors.Is(err, unix.EWOULDBLOCK):
			holder := "another gateway"
			if pid := readPID(f); pid > 0 {
				holder = fmt.Sprintf("the gateway with process ID %d", pid)
			}
			_ = f.Close()
			return nil, &inUseError{what, holder}
		default:
			_ = f.Close()
			return nil, fmt.Errorf("%s can't be locked: locking %s: %w", what, path, err)
		}
	}
}

// inPlace reports whether an open file still has its name.
func inPlace(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// readPID returns 0 if the holder hasn't written its ID yet.
func readPID(f *os.File) int {
	text := make([]byte, 20)
	n, _ := f.ReadAt(text, 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return pid
}

// release unlocks the resource. A nil lock does nothing.
func (l *lock) release() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(l.file.Name()), l.file.Close()) // in this order, so that a file with the name is always locked, or free
	l.file = nil
	return err
}
