//go:build !nodpdk

package dpdk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root makes a file system with the given files; a value that begins with -> is a symbolic link.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func says(t *testing.T, err error, fault string) {
	t.Helper()
	switch {
	case fault == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case fault != "" && (err == nil || !strings.Contains(err.Error(), fault)):
		t.Errorf("error %v, expected one with %q", err, fault)
	}
}

func TestCheckPCI(t *testing.T) {
	const address, dev = "0000:3b:00.0", "sys/bus/pci/devices/0000:3b:00.0/"
	for _, c := range []struct {
		name  string
		files map[string]string
		fault string
	}{
		{"missing", nil, "none at that address"},
		{"no NIC", map[string]string{dev + "class": "0x010802\n"}, "its class is 0x010802"},
		{"no driver", map[string]string{dev + "class": "0x020000\n"}, "bound to no driver, expected vfio-pci"},
		{"kernel's driver", map[string]string{dev + "driver": "->../../drivers/ice"}, "bound to ice, expected vfio-pci"},
		{"shared with the kernel", map[string]string{dev + "driver": "->../../drivers/mlx5_core"}, ""},
		{"no IOMMU", map[string]string{dev + "driver": "->../../drivers/vfio-pci"}, "has no IOMMU group"},
		{"no group file", map[string]string{dev + "driver": "->../../drivers/vfio-pci", dev + "iommu_group": "->../groups/17"},
			"dev/vfio/17 is missing"},
		{"ready", map[string]string{dev + "driver": "->../../drivers/vfio-pci", dev + "iommu_group": "->../groups/17", "dev/vfio/17": ""}, ""},
		{"ready, no IOMMU", map[string]string{dev + "driver": "->../../drivers/vfio-pci", dev + "iommu_group": "->../groups/3",
			"dev/vfio/noiommu-3": ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) { says(t, checkPCI(root(t, c.files), address), c.fault) })
	}
}

func TestCheckHugepages(t *testing.T) {
	const two, one = "sys/kernel/mm/hugepages/hugepages-2048kB/", "sys/kernel/mm/hugepages/hugepages-1048576kB/"
	mounted := "none /dev/hugepages hugetlbfs rw 0 0\n"
	for _, c := range []struct {
		name     string
		files    map[string]string
		inMemory bool
		fault    string
	}{
		{"none", map[string]string{two + "free_hugepages": "0\n"}, true,
			"100 MiB of hugepages are needed (50 of 2048 kB), 0 MiB are free: reserve more (`sysctl vm.nr_hugepages=50`)"},
		{"too few", map[string]string{two + "free_hugepages": "49\n"}, true, "98 MiB are free"},
		{"enough", map[string]string{two + "free_hugepages": "50\n"}, true, ""},
		{"large ones", map[string]string{two + "free_hugepages": "0\n", one + "free_hugepages": "1\n"}, true, ""},
		{"not mounted", map[string]string{two + "free_hugepages": "50\n", "proc/mounts": "proc /proc proc rw 0 0\n"}, false,
			"no hugetlbfs is mounted"},
		{"mounted", map[string]string{two + "free_hugepages": "50\n", "proc/mounts": mounted}, false, ""},
		{"no support", nil, true, "0 MiB are free"},
	} {
		t.Run(c.name, func(t *testing.T) { says(t, checkHugepages(root(t, c.files), 100*mebi, c.inMemory), c.fault) })
	}
}

func TestCheckMemory(t *testing.T) {
	const meminfo, group = "proc/meminfo", "sys/fs/cgroup/"
	rich := "MemTotal: 9000000 kB\nMemAvailable:    1024000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		fault string
	}{
		{"nothing known", nil, ""},
		{"enough", map[string]string{meminfo: rich}, ""},
		{"too little", map[string]string{meminfo: "MemAvailable: 51200 kB\n"}, "100 MiB of memory are needed, 50 MiB are available"},
		{"container", map[string]string{meminfo: rich, group + "memory.max": "104857600\n", group + "memory.current": "20971520\n"},
			"80 MiB are available"},
		{"container without limit", map[string]string{meminfo: rich, group + "memory.max": "max\n", group + "memory.current": "1\n"}, ""},
		{"old container", map[string]string{meminfo: rich, group + "memory/memory.limit_in_bytes": "1048576\n"}, "1 MiB are available"},
		{"container that is full", map[string]string{group + "memory.max": "10\n", group + "memory.current": "20\n"}, "0 MiB are available"},
	} {
		t.Run(c.name, func(t *testing.T) { says(t, checkMemory(root(t, c.files), 100*mebi), c.fault) })
	}
}
