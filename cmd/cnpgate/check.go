package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
)

func checkCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "check --config FILE",
		Short: "Read a configuration and say what is wrong with it, or what follows from it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := load(c, path)
			if err != nil {
				return err
			}
			return summarize(c.OutOrStdout(), path, cfg)
		},
	}
	configFlag(c, &path)
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
	if _, err := fmt.Fprintf(w, "%s is sound\n", path); err != nil {
		return err
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		_, err := fmt.Fprintf(w, "port %s (%s, peer %s): %d bit/s, K_min %d, K_max %d, queue capacity %d octets or %d frames a class, one notification a flow in %v\n",
			p.Name, p.Role, cfg.Ports[p.Peer].Name, p.Rate, p.KMin, p.KMax, p.QueueCapacity, p.QueueFrames, p.PerFlow)
		if err != nil {
			return err
		}
	}
	return nil
}
