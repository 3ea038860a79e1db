// Command cnpgate is the gateway's binary: subcommands, signals, exit codes, and the choice of the devices. Everything else is in the packages that it
// imports.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	err := root().Execute()
	if err == nil {
		return
	}
	status := 1
	if e := (*exitError)(nil); errors.As(err, &e) {
		status = e.status
	}
	if status != interrupted {
		fmt.Fprintln(os.Stderr, "cnpgate:", err)
	}
	os.Exit(status)
}

// Exit statuses other than 0 for success and 1 for an error.
const (
	cutShort    = 3   // a capture ends within a frame; what comes before it was printed
	interrupted = 130 // ended by SIGINT, as in shells; not an error
)

// exitError is an error with an exit status of its own.
type exitError struct {
	error
	status int
}

func (e *exitError) Unwrap() error { return e.error }

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "cnpgate",
		Short: "A gateway between a data centre and its WAN that notifies RoCEv2 senders of congestion at once",
		Long: `cnpgate forwards frames between fabric ports and WAN ports. When an egress queue fills, it marks ECN and notifies the senders
that fill the queue most.`,
		SilenceUsage:  true,
		SilenceErrors: true,

		DisableAutoGenTag: true, // cobra's line has the date
	}
	c.AddCommand(runCommand(), reloadCommand(), logLevelCommand(), checkCommand(), replayCommand(), decodeCommand(), captureCommand(), simCommand(), endpointCommand(),
		manualCommand(), schemaCommand(), showCommand(), versionCommand())
	return c
}

// configFlag adds the flag that every command with a configuration has.
func configFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", "", "configuration file (YAML)")
	if err := c.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag was added a line above
	}
}
