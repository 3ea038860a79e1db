package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestVerdictText: who doesn't know a verdict's name reads its title, and has the commands to type, as a shell takes them.
func TestVerdictText(t *testing.T) {
	ran := cnpgate(t, t.TempDir(), "replay", "--health", corruptedCapture(t, func(frame []byte) []byte { return frame }))
	_, wrong, _ := strings.Cut(ran.stdout, "\nWHAT IS WRONG\n")
	const title, typed = "1. Packets are damaged on the way (wrong-icrc): 10.1.0.1 -> 10.9.0.9", `
       # at 10.9.0.9
       ethtool -S $IF | grep -iE 'crc|symbol|fcs'
       # $IF is the RDMA interface
`
	if ran.status != 0 || !strings.HasPrefix(wrong, title) || !strings.Contains(wrong, typed) {
		t.Errorf("exit status %d, %s\n%s\nwant\n%s\n%s", ran.status, ran.stderr, ran.stdout, title, typed)
	}
}

// TestTypedText: however narrow the output is, a shell reads the same words.
func TestTypedText(t *testing.T) {
	words := func(script string) string {
		out, err := exec.Command("sh", "-c", `a() { printf '%s\n' "$@"; }; set -e
`+script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, out, script)
		}
		return string(out)
	}
	for _, c := range []string{
		"a -i 10.1.0.1 --flow 2001:db8::1,2001:db8::2 -w again.pcapng   # at this gateway, before the job begins",
		`a -d $DEVICE --set "roce_adp_retrans_en=0x0" | grep -iE 'adp|retrans'   # at 10.1.0.1; then there`,
		"# $IF is the RDMA interface",
	} {
		for _, columns := range []int{40, 74, 110} {
			if got, want := words(typedText([]string{c}, columns)), words(c); got != want {
				t.Errorf("%d columns: %q, want %q", columns, got, want)
			}
		}
	}
}
