package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPlantedPartial: what somebody else put where an output is written until it is complete is neither followed nor written to.
func TestPlantedPartial(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(victim, partial string) error
		taken bool // as the file of an earlier run
	}{
		{"symbolic link", os.Symlink, false},
		{"dangling symbolic link", func(victim, partial string) error { return os.Symlink(victim+".new", partial) }, false},
		{"named pipe", func(_, partial string) error { return unix.Mkfifo(partial, 0o600) }, false},
		{"directory", func(_, partial string) error { return os.Mkdir(partial, 0o700) }, false},
		{"hard link", os.Link, true},
		{"file", func(_, partial string) error { return os.WriteFile(partial, []byte("earlier"), 0o600) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "out.json")
			if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.plant(victim, path+partial); err != nil {
				t.Fatal(err)
			}
			out := outputs{{flag: "--report", path: path}}
			err := out.open(t.Context())
			if err == nil {
				_, err = out[0].writer().Write([]byte("report"))
			}
			if err == nil {
				err = out.finish()
			}
			if err == nil {
				err = out.rename()
			}
			if text, _ := os.ReadFile(victim); string(text) != "precious" {
				t.Errorf("the other file is %q", text)
			}
			if _, err := os.Lstat(victim + ".new"); err == nil {
				t.Error("another file was made")
			}
			if !c.taken {
				if err == nil || !strings.Contains(err.Error(), "--report: "+path+partial+" exists and is not a file") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if text, _ := os.ReadFile(path); err != nil || !bytes.Equal(text, []byte("report")) {
				t.Errorf("%v; the report is %q", err, text)
			}
		})
	}
}

// TestPlantedLink: an output's name that is another user's symbolic link is refused, whatever it leads to, and one of root or of this user is
// followed. The rule is the same for every output.
func TestPlantedLink(t *testing.T) {
	users := map[int]string{os.Geteuid(): ""}
	if os.Geteuid() == 0 { // only root can give a link to another user
		users[65534] = "is a symbolic link that belongs to another user (UID 65534)"
	}
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for uid, want := range users {
		for _, to := range []string{victim, os.DevNull, filepath.Join(dir, "none")} {
			link := filepath.Join(dir, "link")
			_ = os.Remove(link)
			if err := errors.Join(os.Symlink(to, link), os.Lchown(link, uid, uid)); err != nil {
				t.Fatal(err)
			}
			out := outputs{{flag: "--report", path: link}}
			opens := out.open(t.Context())
			out.discard()
			_, finish, captures := (&captureFlags{file: link}).open(t.Context(), nil)
			if captures == nil {
				captures = finish()
			}
			for what, err := range map[string]error{"--report": opens, "--write": captures} {
				if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), what+": "+link+" "+want) {
					t.Errorf("a link of user %d to %s: %v, want %q", uid, to, err, want)
				}
			}
			if text, _ := os.ReadFile(victim); want != "" && string(text) != "precious" {
				t.Fatalf("the other file is %q", text)
			}
			if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOutputToPipe: a named pipe and a link to a device are written directly.
func TestOutputToPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, null := filepath.Join(dir, "pipe"), filepath.Join(dir, "null")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.DevNull, null); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte)
	go func() {
		text, _ := os.ReadFile(pipe)
		got <- text
	}()
	for _, path := range []string{null, pipe} {
		out := outputs{{flag: "--report", path: path}}
		if err := out.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := out[0].writer().Write([]byte("report")); err != nil {
			t.Error(err)
		}
		if err := out.finish(); err != nil {
			t.Error(err)
		}
		if err := out.rename(); err != nil {
			t.Error(err)
		}
	}
	if text := <-got; string(text) != "report" {
		t.Errorf("%q came out of the pipe", text)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+partial)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
