//go:build !nodpdk

package dpdk

import (
	"fmt"
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
		t.Run(c.name, func(t *testing.T) {
			r := root(t, c.files)
			says(t, checkPCI(r, address, false), c.fault)
			says(t, checkPCI(r, address, true), c.fault)
		})
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
			"100 MiB of hugepages are needed (50 of 2048 kB), 0 MiB are free: reserve 50 pages more (`echo 50 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages`"},
		{"held by others", map[string]string{two + "free_hugepages": "22\n", two + "nr_hugepages": "300\n"}, true, "reserve 28 pages more (`echo 328 > "},
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
		{"a service's own group", map[string]string{meminfo: rich, "proc/self/cgroup": "0::/system.slice/cnpgate.service\n",
			group + "system.slice/cnpgate.service/memory.max": "62914560\n", group + "system.slice/cnpgate.service/memory.current": "20971520\n",
			group + "system.slice/cnpgate.service/memory.stat": "anon 1\ninactive_file 10485760\n", group + "system.slice/memory.max": "max\n"},
			"50 MiB are available"},
		{"a group above it", map[string]string{meminfo: rich, "proc/self/cgroup": "0::/a/b\n", group + "a/b/memory.max": "max\n",
			group + "a/memory.max": "1048576\n"}, "1 MiB are available"},
		{"a group of version 1", map[string]string{meminfo: rich, "proc/self/cgroup": "4:cpu,memory:/a\n0::/\n",
			group + "memory/a/memory.limit_in_bytes": "2097152\n"}, "2 MiB are available"},
		{"container without limit", map[string]string{meminfo: rich, group + "memory.max": "max\n", group + "memory.current": "1\n"}, ""},
		{"old container", map[string]string{meminfo: rich, group + "memory/memory.limit_in_bytes": "1048576\n"}, "1 MiB are available"},
		{"container that is full", map[string]string{group + "memory.max": "10\n", group + "memory.current": "20\n"}, "0 MiB are available"},
	} {
		t.Run(c.name, func(t *testing.T) { says(t, checkMemory(root(t, c.files), 100*mebi), c.fault) })
	}
}

// TestStaleRuntimeDirs: what killed gateways left goes, what others need stays.
func TestStaleRuntimeDirs(t *testing.T) {
	dir := t.TempDir()
	mine := filePrefix()
	for _, name := range []string{mine, "cnpgate-4194304", "cnpgate-x", "rte"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "files"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	removeStaleRuntimeDirs(dir)
	for name, stays := range map[string]bool{mine: true, "cnpgate-4194304": false, "cnpgate-x": true, "rte": true} { // no process has that number
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPoolIsLocked: the memory of frames is taken and locked at start, or it is said why it isn't.
func TestPoolIsLocked(t *testing.T) {
	locked := func() int {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "VmLck:")
		n := 0
		_, _ = fmt.Sscan(after, &n)
		return n * 1024
	}
	cfg := oneWorker("net_null0")
	cfg.Frames = 8192
	d := open(t, cfg)
	if want := d.Pool().Size() * d.Pool().Room(); d.Pool().Locked() == nil && locked() < want {
		t.Errorf("%d bytes are locked, expected at least %d", locked(), want)
	}
}
