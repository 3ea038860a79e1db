package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// attempts are what a confined process tries.
var attempts = map[string]func(dir string) error{
	"read an input":         func(dir string) error { return errorOf(os.ReadFile(dir + "/in/a")) },
	"read another file":     func(dir string) error { return errorOf(os.ReadFile(dir + "/other/a")) },
	"write an output":       func(dir string) error { return os.WriteFile(dir+"/out/a", nil, 0o600) },
	"rename an output":      func(dir string) error { return os.Rename(dir+"/out/b", dir+"/out/c") },
	"write an input":        func(dir string) error { return os.WriteFile(dir+"/in/a", nil, 0o600) },
	"write another file":    func(dir string) error { return os.WriteFile(dir+"/other/a", nil, 0o600) },
	"serve":                 func(string) error { return errorOf(net.Listen("tcp4", "127.0.0.1:0")) },
	"connect":               func(string) error { return errorOf(net.Dial("udp4", "127.0.0.1:9")) },
	"run a program":         func(string) error { return exec.Command("/bin/true").Run() },
	"trace a process":       func(string) error { return unix.PtraceAttach(os.Getppid()) },
	"load a program (bpf)":  func(string) error { return errno(unix.Syscall(unix.SYS_BPF, 0, 0, 0)) },
	"enter a new namespace": func(string) error { return unix.Unshare(unix.CLONE_NEWNET) },
	"use io_uring":          func(string) error { return errno(unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)) },
	"signal a process":      func(string) error { return unix.Kill(os.Getppid(), 0) },
}

func errorOf[T any](_ T, err error) error { return err }

func errno(_, _ uintptr, err unix.Errno) error {
	if err == 0 {
		return nil
	}
	return err
}

func TestMain(m *testing.M) {
	dir := os.Getenv("CONFINED")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := Confine(Paths{Read: []string{dir + "/in", "/dev/null", dir + "/missing"}, Write: []string{dir + "/out"}}, os.Getenv("SERVE") != ""); err != nil {
		fmt.Println(err)
	}
	for name, try := range attempts {
		err := make(chan error)
		go func() { err <- try(dir) }() // on whatever thread
		fmt.Printf("%s: %v\n", name, errors.Is(<-err, os.ErrPermission))
	}
}

// TestConfine: a confined process uses its files only, opens no connection, and runs no program.
func TestConfine(t *testing.T) {
	for _, serve := range []string{"", "1"} {
		dir := t.TempDir()
		for _, file := range []string{"in/a", "out/b", "other/a"} {
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700), os.WriteFile(filepath.Join(dir, file), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "CONFINED="+dir, "SERVE="+serve)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if strings.Contains(string(out), "no Landlock") {
			t.Skipf("%s", out)
		}
		allowed := map[string]bool{"read an input": true, "write an output": true, "rename an output": true, "serve": serve != ""}
		for name := range attempts {
			if want := fmt.Sprintf("%s: %v\n", name, !allowed[name]); !strings.Contains(string(out), want) {
				t.Errorf("serve %q: want refused %s in:\n%s", serve, want, out)
			}
		}
	}
}

// TestNamesAreKnown: each call of the lists exists on an architecture that they are for, once.
func TestNamesAreKnown(t *testing.T) {
	if _, err := Supervised(Runtime, Files, Serve, Connect, Devices); err != nil { // refuses a name that is there twice
		t.Fatal(err)
	}
	if got := Name(unix.SYS_PTRACE); got != "ptrace" {
		t.Errorf("the name of ptrace is %s", got)
	}
}
