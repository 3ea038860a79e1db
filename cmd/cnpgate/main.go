// Command cnpgate is the gateway's binary: subcommands, signals and exit codes, and the choice of what moves frames. All else is
// in the rooms below it.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "cnpgate:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "cnpgate",
		Short: "A gateway in the wire between a data centre and its WAN that tells RoCEv2 senders about congestion at once",
		Long: `cnpgate forwards every frame between a fabric port and a WAN port, watches the queues in front of them, marks ECN when one
fills, and tells the sender of the flow with the largest share when it is severe: by Fast CNP or Long-haul CNP.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.AddCommand(runCommand(), checkCommand(), replayCommand(), decodeCommand(), showCommand(), versionCommand())
	return c
}

// configFlag adds the flag that every command with a configuration has.
func configFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", "", "configuration file (YAML)")
	if err := c.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag was added a line above
	}
}
