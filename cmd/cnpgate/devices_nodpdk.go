//go:build nodpdk

package main

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
)

// devices has no values in a build without DPDK.
type devices struct{ control.Devices }

func devicesVersion() string { return "without DPDK: everything but run, endpoint and nictest" }

// errNoDPDK is the error of a build without DPDK when devices are needed.
var errNoDPDK = errors.New("this binary was built without DPDK (tag nodpdk) and can't use devices; expected one built without the tag: scripts/build")

// memoryOf is nil: this build has no devices.
func memoryOf(*config.Config) *frameMemory { return nil }

func hostConcerns(*config.Config) []string { return nil }

// hostFaults finds none: the gateway doesn't start in this build.
func hostFaults(*config.Config) ([]config.Fault, []error) { return nil, nil }

func inspectDevices(*config.Config) ([]checkedDevice, error) { return nil, errNoDPDK }

func standBy(context.Context, *config.Config, func() (*config.Config, error), zerolog.Logger, func()) (*standby, error) {
	return nil, errNoDPDK
}

// standby has no values in a build without DPDK.
type standby struct{ cfg *config.Config }

func (*standby) open() (*devices, error) { return nil, errNoDPDK }

func open(*config.Config, zerolog.Logger) (*devices, error) {
	return nil, errNoDPDK
}

func openPort(portSettings, zerolog.Logger) (*devices, error) { return nil, errNoDPDK }

func (d *devices) addresses() [][6]byte { return nil }

func (d *devices) confine(*config.Config, string) {}

func (d *devices) close() error { return nil }
