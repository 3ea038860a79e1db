package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
)

type checkFlags struct {
	config, output string
	devices        bool
}

func checkCommand() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check --config FILE [-o text|json] [--devices]",
		Short: "Check a configuration, and print its mistakes or the values calculated from it",
		Long: `Reads a configuration and prints every mistake in it. If there are none, it prints one line per port: the thresholds and the capacity of its queues, and
how long a full queue takes to drain at the port's rate (DELAY). With --devices it also opens the devices, as run does, prints what each can do and what
that means for the gateway, and closes them again; nothing is forwarded.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.check(c) },
	}
	configFlag(c, &f.config)
	c.Flags().StringVarP(&f.output, "output", "o", "text", `"text" or "json"`)
	c.Flags().BoolVar(&f.devices, "devices", false, "open the devices too, and print what they can do")
	return c
}

func (f *checkFlags) check(c *cobra.Command) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf(`--output is %q, expected "text" or "json"`, f.output)
	}
	cfg, err := load(c, f.config)
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	r, err := newChecked(f.config, cfg)
	if err == nil && f.output == "text" {
		err = r.print(out)
	}
	if err == nil && f.devices {
		r.Devices, err = inspectDevices(cfg)
	}
	switch {
	case err != nil:
		return err
	case f.output == "text":
		return r.printDevices(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// load reads a configuration and prints its warnings, for commands that have no log.
func load(c *cobra.Command, path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(c.ErrOrStderr(), "cnpgate: warning:", w)
	}
	return cfg, nil
}
