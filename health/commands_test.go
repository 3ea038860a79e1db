package health

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCommands: a shell takes the commands to type as they are, whatever the subject is.
func TestCommands(t *testing.T) {
	var all []string
	for _, name := range Names {
		for _, subject := range []string{"10.1.0.1 -> 10.9.0.9, VLAN 5", "fd00::1 -> fd00::2", "the capture", "02:00:00:00:00:01"} {
			for _, gateway := range []bool{false, true} {
				all = append(all, grouped([]Verdict{{Name: name, Subject: subject}}, gateway)[0].Commands...)
			}
		}
	}
	if out, err := exec.Command("sh", "-n", "-c", strings.Join(all, "\n")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
