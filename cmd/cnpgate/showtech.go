package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

// techResources are what a support bundle has of the API, by the name of the file.
var techResources = []struct{ name, path string }{
	{"version", api.VersionPath}, {"health", api.HealthPath}, {"counters", api.CountersPath}, {"mode", api.ModePath}, {"config", api.ConfigPath}, {"reloads", api.ReloadsPath},
	{"episodes", api.EpisodesPath}, {"notifications", api.NotificationsPath + "?limit=1000"}, {"suppressed", api.NotificationsPath + "?limit=1000&outcome=suppressed"},
	{"senders", api.SendersPath}, {"flows", api.FlowsPath + "?limit=1000"}, {"rdma", api.RDMAPath}, {"proxies", api.ProxiesPath}, {"bgp", api.BGPPath}, {"fleet", api.FleetPath}, {"hints", api.HintsPath},
}

// techFiles are what it has of the host: counts and names, and nothing that a user has written.
var techFiles = []string{
	"/proc/version", "/proc/cmdline", "/proc/cpuinfo", "/proc/meminfo", "/proc/interrupts", "/proc/net/dev", "/proc/loadavg", "/proc/uptime", "/etc/os-release",
	"/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/online",
}

// techCommands are the commands whose output it has.
var techCommands = [][]string{
	{"journalctl", "-u", "cnpgate", "-n", "2000", "--no-pager"}, {"systemctl", "show", "cnpgate"}, {"ip", "-details", "-statistics", "link"}, {"lspci", "-nn"},
}

const (
	techTime = 10 * time.Second // for one command
	techMost = 64 << 20         // bytes of one file
)

func showTechCommand(f *showFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "tech [FILE|-] [--socket PATH | --config FILE]",
		Short: "Write a support bundle: versions, configuration, state, counters, log and facts of the host, without secrets",
		Long: `Writes a tar.gz to a new file, by default cnpgate-TIME.tar.gz, or to standard output with -: the answers of the gateway's API, the last 2,000 lines of its journal, and
facts of the host. Passwords in URLs are replaced; keys and tokens aren't read. It has addresses and QPs of flows. What can't be had is listed in missing.txt: a bundle
is also made if the gateway doesn't answer.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return seeHelp(c, fmt.Errorf("%d files are given; expected one at most", len(args)))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range []string{"output", "watch", "wide"} {
				if c.Flags().Changed(name) {
					return seeHelp(c, fmt.Errorf("show tech writes an archive, once, and has no --%s; leave it out", name))
				}
			}
			name := "cnpgate-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
			if len(args) > 0 {
				name = args[0]
			}
			if name == "-" && isTerminal(c.OutOrStdout()) {
				return errors.New("- would write an archive to a terminal; expected a pipe or a file")
			}
			return f.ask(c, func(ctx context.Context, client *api.Client) error {
				if name == "-" {
					return writeTech(ctx, client, c.OutOrStdout(), time.Now())
				}
				file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return fmt.Errorf("%w; expected a file that doesn't exist, or -", err)
				}
				if err := errors.Join(writeTech(ctx, client, file, time.Now()), file.Close()); err != nil {
					return errors.Join(err, os.Remove(name))
				}
				return printLine(c, nil, "wrote "+name)
			})
		},
	}
	return asksGateway(c)
}

// techBundle is a support bundle that is being written.
type techBundle struct {
	to      *tar.Writer
	at      time.Time
	missing strings.Builder
	err     error // the first one, after which nothing is written
}

// writeTech writes a support bundle.
func writeTech(ctx context.Context, client *api.Client, to io.Writer, at time.Time) error {
	zipped := gzip.NewWriter(to)
	b := &techBundle{to: tar.NewWriter(zipped), at: at}
	b.add("command-version.txt", []byte(versionLine()), nil)
	for _, r := range techResources {
		text, failed := resourceText(ctx, client, r.path)
		b.add("gateway/"+r.name+".json", text, failed)
	}
	for _, path := range techFiles {
		text, failed := os.ReadFile(path)
		b.add("host"+path, text, failed)
	}
	for _, words := range techCommands {
		text, failed := commandText(ctx, words)
		b.add("host/"+filepath.Base(words[0])+".txt", text, failed)
	}
	b.add("missing.txt", []byte(b.missing.String()), nil)
	for _, next := range []func() error{ctx.Err, b.to.Close, zipped.Close} {
		if b.err == nil {
			b.err = next()
		}
	}
	return b.err
}

func resourceText(ctx context.Context, client *api.Client, path string) ([]byte, error) {
	body, err := client.JSON(ctx, path)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, techMost))
}

func commandText(ctx context.Context, words []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, techTime)
	defer cancel()
	return exec.CommandContext(ctx, words[0], words[1:]...).Output()
}

// add adds a file, or notes why it is missing.
func (b *techBundle) add(name string, text []byte, failed error) {
	switch {
	case failed != nil:
		fmt.Fprintf(&b.missing, "%s: %v\n", name, failed)
		return
	case b.err != nil:
		return
	}
	text = withoutSecrets(text)
	b.err = b.to.WriteHeader(&tar.Header{Name: "cnpgate/" + name, Mode: int64(fs.FileMode(0o600)), Size: int64(len(text)), ModTime: b.at})
	if b.err == nil {
		_, b.err = b.to.Write(text)
	}
}

var (
	urlSecret    = regexp.MustCompile(`://[^/\s"']*@`)
	quotedSecret = regexp.MustCompile(`(?i)((?:password|passwd|token|secret|seed)\\?["']?\s*[:=]\s*\\?["'])[^"'\n]*?(\\?["'])`) // also quoted within JSON
	namedSecret  = regexp.MustCompile(`(?i)((?:password|passwd|token|secret|seed)["']?\s*[:=]\s*|authorization: *(?:bearer|basic) +)[^\s"',}\\]+`)
	nkeySeed     = regexp.MustCompile(`\bS[ACNOUX][A-Z2-7]{56}\b`)
)

// withoutSecrets replaces what may be a secret: who writes one into a configuration or a log by mistake must not send it.
func withoutSecrets(text []byte) []byte {
	text = urlSecret.ReplaceAll(text, []byte("://REMOVED@"))
	text = quotedSecret.ReplaceAll(text, []byte("${1}REMOVED${2}"))
	text = namedSecret.ReplaceAll(text, []byte("${1}REMOVED"))
	return bytes.TrimSpace(nkeySeed.ReplaceAll(text, []byte("REMOVED")))
}
