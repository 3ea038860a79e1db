//go:build secondopinion

package health

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCommandsRun: what is to be typed about a peer that doesn't answer does what it should, as far as this machine has the programs and an RDMA stack.
func TestCommandsRun(t *testing.T) {
	for _, peer := range []string{"127.0.0.1", "::1"} {
		for _, name := range []string{NoAnswer, Asymmetric} {
			for _, c := range grouped([]Verdict{{Name: name, Subject: peer + " -> " + peer}}, false)[0].Commands {
				c = strings.Replace(c, "tcpdump -i $IF -s 192 -B 65536 -w again.pcap", "tcpdump -i lo -d", 1)
				out, err := exec.Command("sh", "-c", c).CombinedOutput()
				if err != nil && !strings.Contains(string(out), "NETLINK_RDMA") {
					t.Errorf("%s: %v: %s", c, err, out)
				}
			}
		}
	}
}
