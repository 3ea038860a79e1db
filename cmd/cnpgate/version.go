package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// scripts/build sets both from git: an image is built without a repository.
var (
	version = "development" // the tag, or the output of git describe
	commit  string          // the revision; "": the one that go build recorded
)

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

// describe is the version and the revision, if the build has them.
func describe() string { return strings.TrimSpace(version + " " + revision()) }

// revision is the commit that the program was built from, "" if the build has none.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
		return commit
	}
	built, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			built = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-modified"
		}
	}
	return built + modified
}
