package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by scripts/build from git.
var version = "development"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, what the binary was built with, and whether it can drive devices",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "cnpgate %s (%s, %s/%s, %s)\n", describe(), runtime.Version(), runtime.GOOS, runtime.GOARCH, devicesVersion())
			return err
		},
	}
}

// describe is the version, or the revision where the build says only that.
func describe() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "development" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return version + " " + s.Value
			}
		}
	}
	return version
}
