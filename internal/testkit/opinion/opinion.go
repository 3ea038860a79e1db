// Package opinion asks other programs for their opinion of frames.
package opinion

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/pcap"
)

// Scapy runs a Python program with what it reads, and returns what it prints. SCAPY_PYTHON names a Python that has scapy.
func Scapy(t testing.TB, in, program string, args ...string) string {
	t.Helper()
	python := os.Getenv("SCAPY_PYTHON")
	if python == "" {
		python = "/usr/bin/python3" // where Debian's python3-scapy is
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-W", "ignore", program}, args...)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v (it needs scapy: install python3-scapy, or let SCAPY_PYTHON name a Python that has it)\n%s", program, err, out)
	}
	return string(out)
}

// Hex is what such a program reads: a frame in each line.
func Hex(frames ...[]byte) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%x\n", f)
	}
	return b.String()
}

// Tshark is what tshark prints about frames.
func Tshark(t testing.TB, frames [][]byte, args ...string) string {
	t.Helper()
	path, write, end := pcap.Create(t, pcap.Whole)
	for i, f := range frames {
		write(int64(i), f, len(f))
	}
	end()
	out, err := exec.CommandContext(t.Context(), "tshark", append([]string{"-r", path}, args...)...).Output()
	if err != nil {
		t.Fatalf("tshark: %v (scripts/setup --test installs it)", err)
	}
	return string(out)
}
