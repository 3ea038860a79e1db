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
	"github.com/cnpgate/cnpgate/internal/testkit/program"
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
	program.Put(t, root, filepath.Join(dir, "bin", "cnpgate"))
	return dir
}

// TestTryIt runs scripts/try, with namespaces of its own: the sender is notified and obeys, and the README's sample has the same lines but for their figures.
func TestTryIt(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	try := section(t, "../README.md", "Try it")
	_, sample, found := strings.Cut(try, "\n```\n  notifications  ")
	sample, _, ends := strings.Cut("  notifications  "+sample, "\n```\n")
	if !found || !ends {
		t.Fatalf("the README has no sample of scripts/try in\n%s", try)
	}
	cmd := exec.Command("bash", "-c", "mount -t tmpfs none /run/netns\nexec scripts/try")
	cmd.Dir = checkout(t)
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	notified := regexp.MustCompile(`notifications  accepted: slowed-down [1-9]\d*; refused: none`).Match(out)
	if err != nil || !notified || !strings.Contains(string(out), " yes\n") {
		t.Errorf("%v\n%s", err, out)
	}
	figures := regexp.MustCompile(`[\d.]+[A-Za-zµ]*|ongoing| +`)
	for _, line := range strings.Split(sample, "\n") {
		if masked := figures.ReplaceAllString(line, "#"); !strings.Contains(figures.ReplaceAllString(string(out), "#"), masked) {
			t.Errorf("the README has %q, which scripts/try doesn't print; scripts/figures --runs writes what it prints", line)
		}
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
	if n := number(text, `(\d+) for bare-metal\.yaml with its\s+three classes`); n != needed {
		t.Errorf("the README says that %d are needed, check says %d", n, needed)
	}
	if n := number(text, `host-setup --hugepages (\d+)`); n < needed || n > needed*5/4 {
		t.Errorf("the README reserves %d, %d are needed", n, needed)
	}
}
