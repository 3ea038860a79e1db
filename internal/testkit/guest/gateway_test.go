//go:build live && !nodpdk

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// drivers are DPDK's plugins that the guest needs.
var drivers = []string{"bus_pci", "bus_vdev", "mempool_ring", "net_virtio", "net_e1000", "net_vmxnet3"}

// buildGateway compiles the gateway, once for all tests.
func buildGateway(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "cnpgate")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/cnpgate/cnpgate/cmd/cnpgate").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// gatewayFiles are the gateway and all it needs to run in a guest.
func gatewayFiles(t *testing.T, binary string) []File {
	t.Helper()
	names := []string{binary + ":/usr/bin/cnpgate"}
	for _, d := range drivers {
		found, _ := filepath.Glob("/usr/lib/*/dpdk/pmds-23.0/librte_" + d + ".so.23")
		if len(found) != 1 {
			t.Fatalf("DPDK's driver %s is at %q; run scripts/setup --runtime", d, found)
		}
		names = append(names, found[0])
	}
	files, err := Programs(names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// boot starts a guest with two NICs bound to vfio-pci, as deploy/README.md says for bare metal.
func boot(t *testing.T, binary, model string) *Guest {
	t.Helper()
	dir, err := os.MkdirTemp("", "cnpgate-guest") // short: a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g, err := Boot(Config{
		Folder: dir, CPUs: 3, MemoryMiB: 1024, NICs: []string{model, model}, Files: gatewayFiles(t, binary), Modules: []string{"vfio-pci", "vfio_iommu_type1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	run(t, g, "echo 200 > /proc/sys/vm/nr_hugepages")
	for _, n := range g.NICs {
		device := "/sys/bus/pci/devices/" + n.Address()
		run(t, g, fmt.Sprintf("echo vfio-pci > %s/driver_override && echo %s > /sys/bus/pci/drivers_probe && ls -d %s/driver/%s", device, n.Address(), device, n.Address()))
	}
	return g
}

func run(t *testing.T, g *Guest, command string) string {
	t.Helper()
	out, err := g.Run(command)
	if err != nil {
		t.Fatalf("%v\nconsole:\n%s\nlog:\n%s", err, g.Console(), tail(g))
	}
	return strings.TrimSpace(out)
}

func tail(g *Guest) string {
	out, _ := g.Run("tail -n 30 /tmp/log")
	return out
}

func TestBoot(t *testing.T) {
	g := boot(t, buildGateway(t), "virtio-net-pci")
	t.Log(run(t, g, "uname -r; cat /proc/meminfo | grep Huge; cnpgate version; ls /sys/kernel/iommu_groups"))
}
