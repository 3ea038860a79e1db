//go:build live && !nodpdk

// Package deploy has no code: these tests carry out what the README says.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// section returns the text of a section of the README.
func section(t *testing.T, title string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("README.md has no section %s", title)
	}
	before, _, _ := strings.Cut(after, "\n## ")
	return before
}

// commands are the lines of a section that are indented by at least so many spaces: what the reader is to type.
func commands(text string, indent int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, strings.Repeat(" ", indent)) {
			lines = append(lines, line[indent:])
		}
	}
	return strings.Join(lines, "")
}

// checkout is a folder like the repository's, with a gateway compiled in bin.
func checkout(t *testing.T) string {
	t.Helper()
	dir, root := t.TempDir(), ""
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scripts", "deploy", "go.mod"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin", "cnpgate"), "./cmd/cnpgate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// notified is a line about a notification to the sender of the laptop's section.
var notified = regexp.MustCompile(`(?m)^.*standard-cnp.*198\.18\.0\.1.*$`)

// TestLaptop carries out the laptop's section, as it is pasted, with namespaces of its own: the gateway notifies the sender.
func TestLaptop(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	script := "mount -t tmpfs none /run\nmkdir /run/netns\nset -e -m\n" + commands(section(t, "Laptop"), 4)
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.WaitDelay = checkout(t), 10*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(cmd.Dir, "bin/laptop.log"))
	if sent := notified.FindAll(out, -1); err != nil || len(sent) != 3 || !strings.Contains(string(log), `"message":"The gateway has stopped. `) {
		t.Errorf("%v; %d notifications are shown, expected 3\n%s\n%s\n%s", err, len(sent), script, out, log)
	}
}

// TestHugepagesAreEnough: the README reserves enough hugepages for bare-metal.yaml, and not many more.
func TestHugepagesAreEnough(t *testing.T) {
	text := section(t, "Bare metal")
	number := func(text, pattern string) int {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s is nowhere in:\n%s", pattern, text)
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	out, err := exec.Command(filepath.Join(checkout(t), "bin/cnpgate"), "check", "--offline", "--config", "bare-metal.yaml").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	needed := number(string(out), `frames take (\d+) hugepages`)
	if n := number(text, `(\d+) for bare-metal\.yaml with its\s+three classes of 62\.5 MB`); n != needed {
		t.Errorf("the README says that %d are needed, check says %d", n, needed)
	}
	if n := number(text, `host-setup --hugepages (\d+)`); n < needed || n > needed*5/4 {
		t.Errorf("the README reserves %d, %d are needed", n, needed)
	}
}
