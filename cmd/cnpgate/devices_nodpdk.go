//go:build nodpdk

package main

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/config"
)

// devices is the type that a build without DPDK never has one of.
type devices struct{ control.Devices }

func devicesVersion() string { return "without DPDK: everything but run" }

func open(*config.Config, zerolog.Logger) (*devices, error) {
	return nil, errors.New("this binary was built without DPDK (tag nodpdk) and can't run on devices; expected one built without the tag: scripts/build")
}

func (d *devices) close() error { return nil }
