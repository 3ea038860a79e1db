//go:build live && !nodpdk

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

var capabilitySets = regexp.MustCompile(`(?m)^(Cap(?:Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp):\s*(\S+)$`)

// capabilitiesOf are the different sets of capabilities that the threads of a process have.
func capabilitiesOf(t *testing.T, pid int) (threads int, sets []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		set := ""
		for _, m := range capabilitySets.FindAllStringSubmatch(string(text), -1) {
			set += m[1] + " " + strings.TrimLeft(m[2], "0") + " "
		}
		threads++
		if !seen[set] {
			seen[set] = true
			sets = append(sets, set)
		}
	}
	return threads, sets
}

// TestLiveCapabilities: a gateway that forwards has only the capabilities that its devices need, in every thread, also after SIGHUP. It still
// reloads its configuration, and uses a deleted interface again. If files belong to another user, it keeps the capability to use them.
func TestLiveCapabilities(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	program := liveBinary(t)
	enterNamespace(t)
	for _, c := range []struct {
		name  string
		owner int
		want  string
	}{
		{"own files", 0, "CapInh  CapPrm 3000 CapEff 3000 CapAmb  NoNewPrivs 1 Seccomp 2 "},
		{"another user's files", 65534, "CapInh  CapPrm 3002 CapEff 3002 CapAmb  NoNewPrivs 1 Seccomp 2 "},
	} {
		dir := t.TempDir() // which its owner has closed to all others
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, c.owner, c.owner); err != nil {
			t.Fatal(err)
		}
		p := startIn(t, program, dir, liveConfig)
		check := func(when string) {
			t.Helper()
			threads, sets := capabilitiesOf(t, p.cmd.Process.Pid)
			if threads < 4 || len(sets) != 1 || sets[0] != c.want {
				t.Errorf("%s, %s: %d threads, with %q; want %q", c.name, when, threads, sets, c.want)
			}
		}
		check("forwarding")
		if cores, err := os.ReadFile(fmt.Sprintf("/proc/%d/coredump_filter", p.cmd.Process.Pid)); strings.TrimSpace(string(cores)) != "00000010" {
			t.Errorf("%s: a core dump has memory: %s (%v)", c.name, cores, err)
		}
		// A file of root in a directory that the configuration did not name at the start.
		put(t, dir, "c.yaml", []byte(strings.Replace(fmt.Sprintf(liveConfig, dir), "management: {",
			`management: {web: {listen: "127.0.0.1:9999", certificate: /etc/shadow, key: /etc/shadow, token_file: /etc/shadow}, `, 1)))
		if _, err := api.NewClient(filepath.Join(p.dir, "api.sock")).Reload(t.Context(), api.ReloadRequest{}); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: a reload that names a file outside of the sandbox: %v", c.name, err)
		}
		put(t, dir, "c.yaml", fmt.Appendf(nil, liveConfig, dir))
		if _, err := api.NewClient(filepath.Join(p.dir, "api.sock")).Reload(t.Context(), api.ReloadRequest{}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		p.signal(syscall.SIGHUP)
		p.says(`"message":"The configuration was reloaded."`, 2)
		ip(t, "link delete a0")
		if err := p.turns(503, "a0"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		makeWire(t, "a")
		if err := p.turns(200, ""); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		check("afterwards")
		p.stop()
	}
}
