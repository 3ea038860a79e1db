//go:build secondopinion

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unitFile writes the unit, after a change, where systemd-analyze can read it. The program in it need not be installed.
func unitFile(t *testing.T, unit, old, new string) string {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), old, new, 1)
	if old != new && changed == string(text) {
		t.Fatalf("the unit has no %q", old)
	}
	path := filepath.Join(t.TempDir(), unit)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(changed, "/usr/bin/cnpgate", "/bin/true")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUnitIsValid: systemd-analyze accepts the unit, and names the mistake in a unit that has one.
func TestUnitIsValid(t *testing.T) {
	for _, c := range []struct{ unit, old, new, want string }{
		{"cnpgate.service", "", "", ""},
		{"cnpgate.service", "ProtectHome=", "ProtectHom=", "Unknown key 'ProtectHom'"},
		{"cnpgate.service", "TimeoutStopSec=60", "TimeoutStopSec=soon", "soon"},
		{"cnpgate-agent.service", "", "", ""},
		{"cnpgate-agent.service", "RestartSec=5", "RestartSec=soon", "soon"},
	} {
		out, _ := exec.Command("systemd-analyze", "verify", "--man=no", unitFile(t, c.unit, c.old, c.new)).CombinedOutput() // its exit status doesn't tell
		if c.want == "" && len(out) > 0 || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %q, want %q", c.new, out, c.want)
		}
	}
}

var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)

// TestUnitIsConfined: the exposure that systemd-analyze calculates is at most what its devices need: capabilities, sockets and the network. 7.4 of 10 is that of a unit without options. That of the agent, which
// needs neither root nor a device, far below.
func TestUnitIsConfined(t *testing.T) {
	for unit, most := range map[string]float64{"cnpgate.service": 2.5, "cnpgate-agent.service": 2} {
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", unitFile(t, unit, "", "")).CombinedOutput()
		m := exposure.FindStringSubmatch(string(out))
		if m == nil {
			t.Fatalf("%s: %v: %s", unit, err, out)
		}
		if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > most {
			t.Errorf("%s: exposure %s (%v), want at most %v:\n%s", unit, m[1], err, most, out)
		}
	}
}
