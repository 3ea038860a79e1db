package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

// scripts/build sets both from git: an image is built without a repository.
var (
	version = "development" // the tag, or the output of git describe
	commit  string          // the revision; "": the one that go build recorded
)

func versionCommand() *cobra.Command {
	var f showFlags
	var statement, key string
	c := &cobra.Command{
		Use:   "version [-o text|json] [--socket PATH | --config FILE | --verify PROVENANCE --key KEY]",
		Short: "Print the version, what the binary was built with, and the version of the running gateway",
		Long: `Prints the version of this command, and whether it can drive devices. If a gateway answers at the socket: its name, version, start time, and the SHA-256 of the
configuration in force. With --socket or --config it is an error if none does.
With --verify, checks that this binary is one that a release's provenance (cnpgate-VERSION.intoto.json) lists, and that the provenance is signed (.minisig beside it)
with the key; if not, it fails.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if statement != "" {
				subject, err := verify(statement, key)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%sverified: it is %s of %s\n", versionLine(), subject, statement)
				return err
			}
			return f.ask(c, func(ctx context.Context, client *api.Client) error {
				running, err := api.Get[api.Version](ctx, client, api.VersionPath)
				if err != nil {
					running = nil
				}
				if !c.Flags().Changed("socket") && !c.Flags().Changed("config") {
					err = nil
				}
				return errors.Join(printVersions(c.OutOrStdout(), f.output, running), err)
			})
		},
	}
	outputFlag(c, &f.output)
	c.Flags().StringVar(&statement, "verify", "", "provenance of a release (in-toto JSON) that must list this binary")
	c.Flags().StringVar(&key, "key", "", "public key of minisign that signed the provenance, or a file with it")
	c.MarkFlagsRequiredTogether("verify", "key")
	c.MarkFlagsMutuallyExclusive("verify", "output")
	return f.ofGateway(c)
}

// printVersions prints the version of this command, and that of the running gateway, nil if none answers.
func printVersions(to io.Writer, output string, running *api.Version) error {
	if output == "json" {
		all := map[string]any{"version": version, "commit": revision(), "go_version": runtime.Version(), "platform": platform, "devices": devicesVersion()}
		if running != nil {
			all["running"] = running
		}
		return json.NewEncoder(to).Encode(all)
	}
	text := versionLine()
	if running != nil {
		text += fmt.Sprintf("running: %s, %s (%s, %s)", running.Gateway, running.Version, running.GoVersion, running.Platform)
		if running.StartTime != nil {
			text += ", since " + running.StartTime.Format(time.RFC3339)
		}
		text += ", configuration " + running.ConfigHash + "\n"
	}
	_, err := io.WriteString(to, text)
	return err
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
