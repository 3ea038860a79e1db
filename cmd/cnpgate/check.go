package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
)

func checkCommand() *cobra.Command {
	var path string
	var withDevices bool
	c := &cobra.Command{
		Use:   "check --config FILE [--devices]",
		Short: "Read a configuration and say what is wrong with it, or what follows from it",
		Long: `Reads a configuration and prints every mistake in it, or the numbers that follow from it. With --devices it also opens the devices, as run
does, prints what each can do and what that means for the gateway, and closes them again; nothing is forwarded.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := load(c, path)
			if err != nil {
				return err
			}
			if err := summarize(c.OutOrStdout(), path, cfg); err != nil || !withDevices {
				return err
			}
			return describeDevices(c.OutOrStdout(), cfg)
		},
	}
	configFlag(c, &path)
	c.Flags().BoolVar(&withDevices, "devices", false, "open the devices too, and say what they can do")
	return c
}

// load reads a configuration, and prints its warnings.
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

// summarize prints the numbers that the file doesn't give but that decide what happens.
func summarize(w io.Writer, path string, cfg *config.Config) error {
	if _, err := fmt.Fprintf(w, "%s is valid\n", path); err != nil {
		return err
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		_, err := fmt.Fprintf(w, "port %s (%s, peer %s): %d bit/s, K_min %d, K_max %d, queue capacity %d bytes or %d frames a class, one notification a flow in %v\n",
			p.Name, p.Role, cfg.Ports[p.Peer].Name, p.Rate, p.KMin, p.KMax, p.QueueCapacity, p.QueueFrames, p.PerFlow)
		if err != nil {
			return err
		}
	}
	return describeMemory(w, cfg)
}
