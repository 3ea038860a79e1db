//go:build !nodpdk

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/dpdk"
)

// devices are DPDK's, as control wants them.
type devices struct{ *dpdk.Devices }

// devicesVersion is what drives devices.
func devicesVersion() string { return dpdk.Version() }

func open(c *config.Config, log zerolog.Logger) (*devices, error) {
	cfg := deviceConfig(c)
	d, err := dpdk.Open(cfg)
	if err != nil {
		return nil, err
	}
	log.Info().Str("dpdk", dpdk.Version()).Int("frames", d.Pool().Size()).Int("ports", len(cfg.Ports)).Msg("devices opened")
	if err := d.Pool().Locked(); err != nil {
		log.Warn().Err(err).Msg("the frames' memory isn't locked and may be swapped out: give the process CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK (systemd: LimitMEMLOCK=infinity)")
	}
	for i, port := range cfg.Ports {
		profile := d.Profile(i)
		log.Info().Str("port", port.Name).Msg(profile.String())
		for _, w := range profile.Warnings {
			log.Warn().Str("port", port.Name).Msg(w)
		}
	}
	return &devices{d}, nil
}

// describeMemory prints what the frames of a configuration need.
func describeMemory(w io.Writer, c *config.Config) error {
	bytes, err := dpdk.Memory(deviceConfig(c))
	if err != nil {
		return err
	}
	if !c.DPDK.Hugepages {
		_, err = fmt.Fprintf(w, "frames take %d MiB of memory\n", bytes>>20)
		return err
	}
	_, err = fmt.Fprintf(w, "frames take %d hugepages of 2 MiB\n", (bytes+2<<20-1)/(2<<20))
	return err
}

// describeDevices opens the devices of a configuration and prints what they can do.
func describeDevices(w io.Writer, c *config.Config) error {
	d, err := dpdk.Open(deviceConfig(c))
	if err != nil {
		return err
	}
	for i := range c.Ports {
		profile := d.Profile(i)
		_, e := fmt.Fprintf(w, "port %s: %s\n", c.Ports[i].Name, profile)
		err = errors.Join(err, e)
		for _, warning := range profile.Warnings {
			_, e := fmt.Fprintf(w, "port %s: warning: %s\n", c.Ports[i].Name, warning)
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, d.Close())
}

// programMemory is what the program takes itself, in bytes: its code and libraries, Go's heap, and small tables.
const programMemory = 32 << 20

// deviceConfig is what a configuration asks of the devices.
func deviceConfig(c *config.Config) dpdk.Config {
	cfg := dpdk.Config{
		Hugepages: c.DPDK.Hugepages, InMemory: c.DPDK.InMemory, EALArgs: c.DPDK.EALArgs, MainCore: -1,
		Cores: c.DPDK.Workers, Burst: c.DPDK.Burst,
		Frames: assemble.Frames(c, len(c.DPDK.Workers)), OtherMemory: assemble.QueueMemory(c) + programMemory,
	}
	for i := range c.Ports {
		cfg.Ports = append(cfg.Ports, dpdk.PortConfig{Name: c.Ports[i].Name, Device: c.Ports[i].Device, MTU: c.Ports[i].MTU})
	}
	return cfg
}

func (d *devices) Backend(worker int) burst.Backend { return d.Devices.Backend(worker) }

func (d *devices) Enter(core int) (leave func(), err error) {
	if err := dpdk.RegisterThread(core); err != nil {
		return nil, err
	}
	return dpdk.UnregisterThread, nil
}

func (d *devices) LinkUp(port int) (bool, error) { return d.Port(port).LinkUp() }

func (d *devices) SetLink(port int, up bool) error { return d.Port(port).SetLink(up) }

func (d *devices) Counters(port int) (control.DeviceCounters, error) {
	s, err := d.Port(port).Stats()
	return control.DeviceCounters{
		Missed: s.RxMissed, NoBuffer: s.RxNoBuffer, ReceiveErrors: s.RxErrors, Oversized: s.RxOversized, TransmitErrors: s.TxErrors,
	}, err
}

func (d *devices) Watch(ctx context.Context, report func(control.Notice)) error {
	return d.Devices.Watch(ctx, func(n dpdk.Notice) { report(control.Notice(n)) })
}

// close closes the devices once the workers have stopped.
func (d *devices) close() error { return d.Close() }
