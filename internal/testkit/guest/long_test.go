//go:build live && !nodpdk && long

package guest

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

func TestVirtio(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	testDevice(t, buildGateway(t), "virtio-net-pci", []int{1500, 4200, 9000}, "[1]")
}

// The other kinds of devices that QEMU has, with as many workers as they have queues for.
func TestE1000E(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	testDevice(t, buildGateway(t), "e1000e", []int{1500, 4200, 9000}, "[1]")
}

func TestVMXNet3(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	testDevice(t, buildGateway(t), "vmxnet3", []int{1500, 4200, 9000}, "[1, 2]")
}
