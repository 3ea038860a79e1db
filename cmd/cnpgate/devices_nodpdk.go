//go:build nodpdk

package main

import (
	"errors"
	"io"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
)

// devices is the type that a build without DPDK never has one of.
type devices struct{ control.Devices }

func devicesVersion() string { return "without DPDK: everything but run" }

// errNoDPDK is what a build without DPDK says where devices are asked for.
var errNoDPDK = errors.New("this binary was built without DPDK (tag nodpdk) and can't use devices; expected one built without the tag: scripts/build")

// describeMemory says nothing: nothing here moves frames.
func describeMemory(io.Writer, *config.Config) error { return nil }

func describeDevices(io.Writer, *config.Config) error { return errNoDPDK }

func open(*config.Config, zerolog.Logger) (*devices, error) {
	return nil, errNoDPDK
}

func (d *devices) close() error { return nil }
