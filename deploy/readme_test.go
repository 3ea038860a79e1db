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

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// section returns the text of a section of a page.
func section(t *testing.T, page, title string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %s", page, title)
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

// TestTryIt carries out what the main README has the reader paste, but for the build, with namespaces of its own: the sender is notified and obeys.
func TestTryIt(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	paste := commands(section(t, "../README.md", "Try it"), 4)
	build, paste, _ := strings.Cut(paste, "\n")
	paste, _, found := strings.Cut(paste, "\n1: queue ")
	if !strings.HasPrefix(build, "scripts/setup") || !found {
		t.Fatalf("the first line of the paste is %q; expected the build, and a sample of the output behind the paste", build)
	}
	cmd := exec.Command("bash", "-c", "mount -t tmpfs none /run/netns\nset -e -m\n"+paste)
	cmd.Dir = checkout(t)
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	notified := regexp.MustCompile(`notifications  accepted: slowed-down [1-9]\d*; refused: none`).Match(out)
	if err != nil || !notified || !strings.Contains(string(out), " yes\n") || !strings.Contains(string(out), `"message":"The gateway has stopped. `) {
		t.Errorf("%v\n%s\n%s", err, paste, out)
	}
}

// TestHugepagesAreEnough: the README reserves enough hugepages for bare-metal.yaml, and not many more.
func TestHugepagesAreEnough(t *testing.T) {
	text := section(t, "README.md", "Bare metal")
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
