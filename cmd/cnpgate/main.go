// Command cnpgate is the gateway's binary: subcommands, signals, exit codes, and the choice of the devices. Everything else is in the packages that it
// imports.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	c := root()
	validate := c.PersistentPreRunE
	c.PersistentPreRunE = func(c *cobra.Command, args []string) error { // not in root: a process can't leave its sandbox, and tests are one
		if err := validate(c, args); err != nil {
			return err
		}
		return confine(c, args)
	}
	os.Exit(execute(c))
}

// execute carries out a command line, prints what is wrong, and returns the exit status.
func execute(c *cobra.Command) (status int) {
	help := fitHelp(c)
	err := cmp.Or(c.Execute(), *help)
	if err == nil {
		return 0
	}
	status = 1
	if e := (*exitError)(nil); errors.As(err, &e) {
		status = e.status
	}
	if status != interrupted && err.Error() != "" {
		fmt.Fprintln(c.ErrOrStderr(), errorText(err, inJournal()))
	}
	return status
}

// errorText is what is printed of an error: in the journal each line with the priority of errors.
func errorText(err error, inJournal bool) string {
	text := "cnpgate: " + err.Error()
	if !inJournal {
		return text
	}
	prefix := fmt.Sprintf("<%d>", priorities["error"])
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}

// Exit statuses other than 0 for success and 1 for an error.
const (
	cutShort     = 3   // a capture ends within a frame; what comes before it was printed
	needsRestart = 3   // reload --dry-run: changes need a restart
	notSafe      = 3   // drain: the gateway is not safe to stop yet
	refused      = 78  // run: the configuration file has mistakes (EX_CONFIG of sysexits.h), so that another attempt is of no use
	interrupted  = 130 // ended by SIGINT, as in shells; not an error
)

// exitError is an error with an exit status of its own. Without a text nothing is printed: the output has said it.
type exitError struct {
	error
	status int
}

func (e *exitError) Unwrap() error { return e.error }

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "cnpgate",
		Short: "A gateway between a data centre and its WAN that notifies RoCEv2 senders of congestion at once",
		Long: `cnpgate forwards frames between fabric ports and WAN ports. When the queue of a WAN port fills, it notifies the senders that fill it.
Without a gateway, replay --health says what is wrong with the RDMA connections of a capture, and sim simulates networks.`,
		SilenceUsage:  true,
		SilenceErrors: true,

		DisableAutoGenTag: true, // cobra's line has the date

		Version:           version,
		PersistentPreRunE: validateFlags,
	}
	c.SetVersionTemplate(versionLine())
	c.SetFlagErrorFunc(flagError)
	c.AddCommand(agentCommand(), initCommand(), runCommand(), reloadCommand(), checkCommand(), replayCommand(), decodeCommand(), captureCommand(), setCommand(), hintCommand(), drainCommand(), simCommand(), endpointCommand(), nictestCommand(),
		manualCommand(), showCommand(), statusCommand(), explainCommand(), fleetCommand(), topCommand(), versionCommand(), webCommand(), completionCommand())
	c.InitDefaultHelpCmd()
	group(c, groups)
	explain(c)
	if help, _, err := c.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, args []string) error {
			if found, rest, _ := c.Find(args); len(rest) > 0 {
				return unknownCommand(found, rest[0])
			}
			return nil
		}
	}
	return c
}

type commandGroup struct{ id, title, commands string }

// groups are the commands by what they are for, in the order of the help.
var groups = []commandGroup{
	{"start", "Start:", "init check run"},
	{"look", "Look:", "status show top explain web"},
	{"change", "Change:", "reload set drain hint fleet"},
	{"evidence", "Evidence:", "capture decode replay agent"},
	{"research", "Research:", "sim endpoint nictest"},
	{"more", "More:", "version completion help"},
}

// showGroups are those of show: what every gateway has, and what it has only if the configuration has it.
var showGroups = []commandGroup{
	{"all", "Of every gateway:", "config counters episodes flows health notifications ports queues senders tech"},
	{"optional", "If the configuration has it:", "fleet proxies"},
}

// group puts the commands below one into groups.
func group(above *cobra.Command, groups []commandGroup) {
	for _, g := range groups {
		above.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range above.Commands() {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.id
			}
		}
	}
}

// removed are the former commands, with what takes their place.
var removed = map[string]string{
	"cnpgate agent keygen":     "cnpgate fleet keys NAME, which writes NAME.nk",
	"cnpgate fleet":            "cnpgate show fleet, or cnpgate fleet keys",
	"cnpgate log-level":        "cnpgate set log-level",
	"cnpgate mark":             "cnpgate show counters --mark",
	"cnpgate mode":             "cnpgate set mode",
	"cnpgate schema":           "the file cnpgate.schema.json, in deploy of the sources and /usr/share/cnpgate of the package",
	"cnpgate show bgp":         "cnpgate show proxies --bgp",
	"cnpgate show hints":       "cnpgate hint",
	"cnpgate show reloads":     "cnpgate show config --history",
	"cnpgate show version":     "cnpgate version",
	"cnpgate show pairs":       "cnpgate show flows; its columns have the sender's QP, the evidence and the contradictions (--wide)",
	"cnpgate show connections": "cnpgate show health --rdma",
}

// removedFlags are the former flags, in the same way.
var removedFlags = map[string]string{
	"destination-ip":    "--destination ADDRESS",
	"destination-qp":    "--destination ADDRESS,QP, or --destination ,QP",
	"extension-class":   "--config FILE, with notifications.long_haul_cnp.extension_class",
	"icmpv6-type":       "--config FILE, with notifications.long_haul_cnp.icmpv6_type",
	"option-type":       "--config FILE, with notifications.fast_cnp.option_type",
	"proxy-port":        "--config FILE, with proxy.port",
	"source-ip":         "--source ADDRESS",
	"source-qp":         "--source ADDRESS,QP, or --source ,QP",
	"trace-option-type": "--config FILE, with notifications.fast_cnp.trace_option_type",
}

// configArgument lets a command take its configuration by --config, or as its argument.
func configArgument(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", "", "configuration file (YAML)")
	c.Args = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("config") {
			args = append(args, *path)
		}
		if len(args) != 1 {
			return seeHelp(c, fmt.Errorf("%d configuration files are given; expected one: %s FILE", len(args), c.CommandPath()))
		}
		*path = args[0]
		return nil
	}
}
