package deploy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDrivers: scripts/lib.sh installs the driver of each NIC that README.md lists, and README.md or the backend knows each other driver that it installs.
func TestDrivers(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	loop := regexp.MustCompile(`(?m)^for driver in (.*); do$`).FindStringSubmatch(read("../scripts/lib.sh"))
	if loop == nil {
		t.Fatal("scripts/lib.sh has no list of drivers")
	}
	packages := strings.Fields(regexp.MustCompile(`-\B`).ReplaceAllString(loop[1], "")) // a name that ends in a digit has a hyphen before the ABI's
	others := map[string]string{"virtio-net": "virtio", "e1000e": "e1000"}              // packages that are called otherwise
	known, listed := read("README.md")+read("../internal/dpdk/driver.go"), 0
	for _, name := range packages {
		untold := name == "iavf" || name == "igc" // nobody has said that they work
		if !untold && !regexp.MustCompile(`\b(net_)?`+strings.ReplaceAll(name, "-", "_")).MatchString(known) {
			t.Errorf("scripts/lib.sh installs the driver %s, which has no row in README.md", name)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| PCI address, ([^|]+) \|`).FindAllStringSubmatch(read("README.md"), -1) {
		for _, nic := range strings.Split(row[1], ", ") {
			if name := others[nic]; name != "" {
				nic = name
			}
			if listed++; !slices.Contains(packages, nic) {
				t.Errorf("README.md lists %s, of which scripts/lib.sh installs no driver: %q", nic, packages)
			}
		}
	}
	if listed < 9 {
		t.Errorf("README.md lists %d NICs, want 9 or more", listed)
	}
}
