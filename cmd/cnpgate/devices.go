//go:build !nodpdk

package main

import (
	"context"
	"net"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control"
	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/telemetry"
)

// devices implements control.Devices with DPDK.
type devices struct {
	*dpdk.Devices
	log zerolog.Logger
}

// devicesVersion is the version of DPDK.
func devicesVersion() string { return dpdk.Version() }

func open(c *config.Config, log zerolog.Logger) (*devices, error) {
	d, err := openDevices(deviceConfig(c), log)
	return d, located(c, err)
}

// openPort opens one port for an endpoint.
func openPort(p portSettings, log zerolog.Logger) (*devices, error) {
	return openDevices(dpdk.Config{
		Hugepages: p.hugepages, MainCore: -1, Cores: []int{p.core}, OtherMemory: programMemory,
		Ports: []dpdk.PortConfig{{Name: "endpoint", Device: p.device, MTU: p.mtu}},
	}, log)
}

func openDevices(cfg dpdk.Config, log zerolog.Logger) (*devices, error) {
	d, err := dpdk.Open(withLog(cfg, log))
	if err != nil {
		return nil, err
	}
	return logged(d, cfg, log), nil
}

// withLog makes DPDK log to log.
func withLog(cfg dpdk.Config, log zerolog.Logger) dpdk.Config {
	cfg.Log = func(level dpdk.LogLevel, text string) {
		log.WithLevel(logLevel(level)).Stringer("dpdk_level", level).Msg(text)
	}
	return cfg
}

// logged logs what was opened.
func logged(d *dpdk.Devices, cfg dpdk.Config, log zerolog.Logger) *devices {
	log.Info().Str("dpdk_version", dpdk.Version()).Int("buffers", d.Pool().Size()).Msg("The devices are open.")
	if err := d.Pool().Locked(); err != nil {
		log.Warn().Err(err).Msg("The memory of the frames is not locked and may be swapped out. Give the process CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK (systemd: LimitMEMLOCK=infinity).")
	}
	for i, port := range cfg.Ports {
		profile := d.Profile(i)
		log.Info().Str("port", port.Name).Any("device_properties", profile).Msg("The device is open: " + profile.String() + ".")
		for _, w := range profile.Warnings {
			log.Warn().Str("port", port.Name).Msg("Warning about the device: " + w + ".")
		}
	}
	return &devices{d, log}
}

// logLevel maps a level of DPDK, which has more of them, to one of the log. DPDK's highest levels mostly precede the end of the process.
func logLevel(level dpdk.LogLevel) zerolog.Level {
	switch {
	case level <= dpdk.LogCritical:
		return zerolog.FatalLevel
	case level == dpdk.LogError:
		return zerolog.ErrorLevel
	case level == dpdk.LogWarning:
		return zerolog.WarnLevel
	case level <= dpdk.LogInfo:
		return zerolog.InfoLevel
	}
	return zerolog.DebugLevel
}

// memoryOf is the memory that the frames of a configuration need; nil if a device isn't known.
func memoryOf(c *config.Config) *frameMemory {
	bytes, err := dpdk.Memory(deviceConfig(c))
	if err != nil {
		return nil // hostFaults has the reason
	}
	m := &frameMemory{Bytes: bytes}
	if c.DPDK.Hugepages {
		m.Hugepages = (bytes + 2<<20 - 1) / (2 << 20)
	}
	return m
}

// inspectDevices opens the devices of a configuration and describes what they can do.
func inspectDevices(c *config.Config) (all []checkedDevice, err error) {
	d, err := dpdk.Open(deviceConfig(c))
	if err != nil {
		return nil, located(c, err)
	}
	for i := range c.Ports {
		profile := d.Profile(i)
		all = append(all, checkedDevice{Port: c.Ports[i].Name, Profile: profile, warnings: profile.Warnings})
	}
	return all, d.Close()
}

// programMemory is the memory of the program itself, in bytes: its code and libraries, Go's heap, and small tables.
const programMemory = 32 << 20

// deviceConfig has the settings of the devices that follow from a configuration.
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

// Buffers is how many buffers of frames are in use, and how many there are.
func (d *devices) Buffers() (used, size int) { return d.Pool().InUse(), d.Pool().Size() }

func (d *devices) LinkUp(port int) (bool, error) { return d.Port(port).LinkUp() }

func (d *devices) Describe(port int) report.Device {
	profile, p := d.Profile(port), d.Port(port)
	up, _ := p.LinkUp() // an error: not known to be up
	return report.Device{Driver: profile.Driver, Interface: profile.Interface, MAC: profile.Address, MTU: profile.MTU, LinkUp: up, SpeedBPS: p.Speed()}
}

func (d *devices) SetLink(port int, up bool) error { return d.Port(port).SetLink(up) }

func (d *devices) Counters(port int) (telemetry.Values, error) {
	s, err := d.Port(port).Stats()
	v := telemetry.Values{}
	v.Add(telemetry.DeviceMissed, "", s.RxMissed)
	v.Add(telemetry.DeviceNoBuffer, "", s.RxNoBuffer)
	v.Add(telemetry.DeviceReceiveErrors, "", s.RxErrors)
	v.Add(telemetry.DeviceOversized, "", s.RxOversized)
	v.Add(telemetry.DeviceTransmitErrors, "", s.TxErrors)
	return v, err
}

func (d *devices) Watch(ctx context.Context, report func(control.Notice)) error {
	return d.Devices.Watch(ctx, func(n dpdk.Notice) { report(control.Notice(n)) })
}

// addresses are the ports' MAC addresses, zero where there is none.
func (d *devices) addresses() [][6]byte {
	all := make([][6]byte, d.Ports())
	for i := range all {
		if mac, err := net.ParseMAC(d.Profile(i).Address); err == nil {
			copy(all[i][:], mac)
		}
	}
	return all
}

// close closes the devices once the workers have stopped.
func (d *devices) close() error {
	err := d.Close()
	for i := range d.Ports() {
		if n := d.Discarded(i); n > 0 {
			d.log.Info().Str("port", d.Port(i).Name()).Uint64("frames", n).
				Msg("Frames that waited in the device when the gateway stopped were dropped. No counter includes them, because no worker received them.")
		}
	}
	return err
}
