package main

import (
	"strings"
	"testing"
)

// TestMachineWithoutCaches: a machine that doesn't say its caches is described without them.
func TestMachineWithoutCaches(t *testing.T) {
	m := machine{CPU: "Example 9000", Cores: 2, MemoryGiB: 8}
	if text := m.String(); !strings.HasPrefix(text, "Example 9000, 2 cores, 8 GiB;") {
		t.Errorf("%q", text)
	}
	m.L2, m.L3 = "1024K", "8192K"
	if text := m.String(); !strings.HasPrefix(text, "Example 9000, 2 cores, 1024K of L2 a core, 8192K of L3, 8 GiB;") {
		t.Errorf("%q", text)
	}
}
