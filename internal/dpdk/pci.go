//go:build !nodpdk

package dpdk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// checkPCI checks a PCI device before the EAL does: the EAL silently skips one that is missing or has the wrong driver.
// onlyLook: nothing is opened. root is the file system's root, "/" but in tests.
func checkPCI(root, address string, onlyLook bool) error {
	dir := filepath.Join(root, "sys/bus/pci/devices", address)
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("PCI device %s: there is none at that address (see `dpdk-devbind.py --status-dev net`)", address)
	}
	if class, err := os.ReadFile(filepath.Join(dir, "class")); err == nil && !strings.HasPrefix(string(class), "0x02") {
		return fmt.Errorf("PCI device %s isn't a network device: its class is %s, expected one that begins with 0x02", address, strings.TrimSpace(string(class)))
	}
	driver := "no driver"
	if link, err := os.Readlink(filepath.Join(dir, "driver")); err == nil {
		driver = filepath.Base(link)
	}
	switch driver {
	case "vfio-pci":
		return checkVFIO(root, dir, address, onlyLook)
	case "uio_pci_generic", "igb_uio", "mlx4_core", "mlx5_core": // the last two share the device with the kernel
		return nil
	}
	return fmt.Errorf("PCI device %s is bound to %s, expected vfio-pci: `dpdk-devbind.py --bind=vfio-pci %s`", address, driver, address)
}

// checkVFIO makes sure that the device's IOMMU group can be opened. onlyLook: by the file's mode.
func checkVFIO(root, dir, address string, onlyLook bool) error {
	group, err := os.Readlink(filepath.Join(dir, "iommu_group"))
	if err != nil {
		return fmt.Errorf("PCI device %s is bound to vfio-pci but has no IOMMU group: switch the IOMMU on (BIOS and intel_iommu=on), "+
			"or set vfio's enable_unsafe_noiommu_mode", address)
	}
	try := tryOpen
	if onlyLook {
		try = func(path string) error { return unix.Access(path, unix.R_OK|unix.W_OK) }
	}
	name := filepath.Join(root, "dev/vfio", filepath.Base(group))
	for _, path := range []string{name, filepath.Join(root, "dev/vfio", "noiommu-"+filepath.Base(group))} {
		err := try(path)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("PCI device %s: %s can't be opened: %w: run as root, or give this user the file", address, path, err)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("PCI device %s: %s can't be opened (does another process use the device?): %w", address, path, err)
		}
	}
	return fmt.Errorf("PCI device %s: %s is missing: load vfio-pci, and hand /dev/vfio into the container", address, name)
}

func tryOpen(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
