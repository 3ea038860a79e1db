package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/config"
)

// scripts/build sets both from git: an image is built without a repository.
var (
	version = "development" // the tag, or the output of git describe
	commit  string          // the revision; "": the one that go build recorded
)

func versionCommand() *cobra.Command {
	var output, statement, key string
	c := &cobra.Command{
		Use:   "version [-o text|json] [--verify PROVENANCE --key KEY]",
		Short: "Print the version, what the binary was built with, and whether it can drive devices",
		Long: `Prints the version, what the binary was built with, and whether it can drive devices. With --verify, checks that this binary is one that a release's provenance
(cnpgate-VERSION.intoto.json) lists, and that the provenance is signed (.minisig beside it) with the key; if not, it fails.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if statement != "" {
				subject, err := verify(statement, key)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%sverified: it is %s of %s\n", versionLine(), subject, statement)
				return err
			}
			if output == "json" {
				return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{
					"version": version, "commit": revision(), "go_version": runtime.Version(), "platform": platform, "devices": devicesVersion(),
				})
			}
			_, err := io.WriteString(c.OutOrStdout(), versionLine())
			return err
		},
	}
	outputFlag(c, &output)
	c.Flags().StringVar(&statement, "verify", "", "provenance of a release (in-toto JSON) that must list this binary")
	c.Flags().StringVar(&key, "key", "", "public key of minisign that signed the provenance, or a file with it")
	c.MarkFlagsRequiredTogether("verify", "key")
	c.MarkFlagsMutuallyExclusive("verify", "output")
	return c
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

func versionLine() string {
	return fmt.Sprintf("cnpgate %s (%s, %s, %s)\n", describe(), runtime.Version(), platform, devicesVersion())
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

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration files, for editors",
		Long: `Prints a JSON Schema (draft-07) of configuration files, with which editors complete keys and mark mistakes. It describes the keys and the
form of their values. cnpgate check finds every mistake.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.JSONSchema())
			return err
		},
	}
}
