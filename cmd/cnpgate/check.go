package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
)

type checkFlags struct {
	config, output   string
	devices, offline bool
}

func checkCommand() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check [--config] FILE|- [-o text|json] [--offline | --devices]",
		Short: "Check a configuration, and print its mistakes or the values calculated from it",
		Long: `Reads a configuration and prints every mistake in it. It also checks whether the gateway can start with it on this host, without starting anything or opening
a device: whether the devices are there and ready, the cores, the EAL's arguments, and the memory. What takes rights to see, and what a running gateway uses, is
left out, with a warning. With --offline only the file is checked, as in a binary without DPDK. "-" is standard input.

If there are no mistakes, it prints one line per port: the thresholds and the capacity of its queues, and how long a full queue takes to drain at the port's
rate (DELAY). With --devices it also opens the devices, as run does, prints what each can do and what that means for the gateway, and closes them again; nothing
is forwarded. Warnings go to standard error.`,
		RunE: func(c *cobra.Command, _ []string) error { return f.check(c) },
	}
	configArgument(c, &f.config)
	outputFlag(c, &f.output)
	c.Flags().BoolVar(&f.devices, "devices", false, "open the devices too, and print what they can do")
	c.Flags().BoolVar(&f.offline, "offline", false, "check only the file, not this host")
	c.MarkFlagsMutuallyExclusive("devices", "offline")
	return c
}

func (f *checkFlags) check(c *cobra.Command) error {
	cfg, err := load(c, f.config)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	r := newChecked(cfg.File.Name, cfg)
	if !f.offline {
		if err := f.checkHost(cfg, r); err != nil {
			return err
		}
	}
	for _, w := range r.Warnings[len(cfg.Warnings):] { // load has printed the first ones
		warn(c, w)
	}
	if f.output == "text" {
		err = r.print(out)
	}
	if err == nil && f.devices {
		r.Devices, err = inspectDevices(cfg)
	}
	switch {
	case err != nil:
		return err
	case f.output == "text":
		return r.printDevices(out, c.ErrOrStderr())
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// checkHost checks whether the gateway can start on this host, and adds warnings about what it couldn't see.
func (f *checkFlags) checkHost(cfg *config.Config, r *checked) error {
	faults, unseen := hostFaults(cfg)
	if err := cfg.Refused(faults); err != nil {
		return fmt.Errorf("%w\nthis is about the present host; --offline checks only the file", err)
	}
	for _, err := range unseen {
		r.Warnings = append(r.Warnings, "not checked: "+err.Error())
	}
	return nil
}

// warn prints a warning.
func warn(c *cobra.Command, warning any) { fmt.Fprintln(c.ErrOrStderr(), "cnpgate: warning:", warning) }

// load reads a configuration, "-" from standard input, and prints its warnings, for commands that have no log.
func load(c *cobra.Command, path string) (cfg *config.Config, err error) {
	if path == "-" {
		cfg, err = config.Read("standard input", c.InOrStdin())
	} else {
		cfg, err = config.Load(path)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		warn(c, w)
	}
	return cfg, nil
}
