package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/sim/scenario"
	"github.com/cnpgate/cnpgate/sim/scenarios"
)

type simFlags struct {
	output, csv, svg string
	wide             bool
	set, sweep       []string
	responses        []string
	cores            int
	senders          []int
	explain, list    bool
	web, listen      string
	draw             int
	settable         bool
	seed             uint64
}

func simCommand() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim SCENARIO.yaml [--set KEY=VALUE ...] [--sweep KEY=A,B,C ...] [--response R ...] [--explain] [-o text|json] [--csv PREFIX] [--svg PREFIX] [--web[=FILE.html]]",
		Short: "Simulate a network around the gateway's dataplane in virtual time",
		Long: `Simulates the scenario with each of its responses to congestion, and prints the results side by side. SCENARIO.yaml is a file or one of the
built-in scenarios (--list). The same scenario and seed give the same output. The runs share the cores.
--explain prints for each run how the gateways' queues, the fair rate F of the control law, notifications and two senders' rates changed over
time; --set length=2ms shows the first 2 ms in detail. --csv and --svg write a file for each run: PREFIX-RESPONSE.csv with a row for each sample,
PREFIX-RESPONSE.svg with a plot of what --explain prints.
--web opens the playground with the scenario: a page on which it runs with two responses side by side (two of --response; by default ecn and the standard CNP),
in the browser. The command serves it until Ctrl-C; --web=FILE.html writes it as one file, which needs no server.
--draw N simulates N drawn networks with drawn NICs instead of a scenario, and prints a row for each: goodput as a part of the possible one, lost
packets and the queue, with ECN alone and with other responses (by default the standard CNP); then the shares of the networks whose WAN is full, the
worst ones, and how many lose packets, or have a long queue, whatever standard CNPs come. draw-SEED-NUMBER, with --settable-nics settable-SEED-NUMBER, is the scenario of a row.`,
		ValidArgsFunction: completeScenario,
		RunE:              f.run,
	}
	f.output = "text"
	wideFlag(c, &f.wide)
	wordFlag(c, &f.output, "output", "o", "form of the summary, text and table being the same", "text", "json", "table")
	c.Flags().StringVar(&f.csv, "csv", "", "write the time series of each run to PREFIX-RESPONSE.csv")
	c.Flags().StringVar(&f.svg, "svg", "", "write a plot of each run to PREFIX-RESPONSE.svg")
	c.Flags().BoolVar(&f.explain, "explain", false, "print what happened over time")
	c.Flags().IntSliceVar(&f.senders, "senders", nil, "senders that --explain and --svg show, by number; by default the slowest one, and the one with most notifications")
	c.Flags().StringArrayVar(&f.set, "set", nil, "replace a value of the scenario, such as seed=2; may be given several times")
	c.Flags().StringArrayVar(&f.sweep, "sweep", nil, "run with each of several values, such as hosts.mtu=1024,4096; may be given several times")
	c.Flags().StringSliceVar(&f.responses, "response", nil, "only these of the scenario's responses")
	complete(c, "response", responses()...)
	c.Flags().IntVar(&f.cores, "cores", 0, "runs at a time; 0: one per core")
	c.Flags().StringVar(&f.web, "web", "", "open the scenario in the playground; =FILE.html writes that page to a file instead")
	c.Flags().Lookup("web").NoOptDefVal = served
	listenFlag(c, &f.listen)
	c.Flags().BoolVar(&f.list, "list", false, "list the built-in scenarios")
	c.Flags().IntVar(&f.draw, "draw", 0, "simulate this many drawn networks")
	c.Flags().BoolVar(&f.settable, "settable-nics", false, "draw NICs from what operators can set, not only from what is published of NICs")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "of the drawn networks")
	return c
}

func (f *simFlags) run(c *cobra.Command, args []string) error {
	if f.list {
		for _, name := range scenarios.Names() {
			if err := printHung(paperOf(c.OutOrStdout(), f.wide), fmt.Sprintf("%-20s", name), scenarios.Summary(name)); err != nil {
				return err
			}
		}
		return nil
	}
	if c.Flags().Changed("draw") {
		return f.runDraws(c, args)
	}
	if len(args) != 1 {
		return fmt.Errorf("%d scenarios are given, expected one: a file, or a name that cnpgate sim --list shows", len(args))
	}
	if f.cores < 0 {
		return fmt.Errorf("--cores %d: expected 0 or more", f.cores)
	}
	if f.explain && f.output == "json" {
		return errors.New("--explain prints text; for programs, --csv has the same figures: expected one of --explain and -o json")
	}
	if f.web != "" {
		return f.openPlayground(c, args[0])
	}
	if c.Flags().Changed("listen") {
		return errors.New("--listen is where --web serves the page; give --web, too")
	}
	runs, err := f.runs(c, args[0])
	if err != nil {
		return err
	}
	if err := f.checkSenders(runs[0].scenario); err != nil {
		return err
	}
	ctx, stop := untilStopped()
	defer stop()
	files, err := f.openFiles(ctx, args[0], runs)
	if err != nil {
		return err
	}
	if err := simulate(ctx, c.ErrOrStderr(), runs, f.cores); err != nil {
		files.discard()
		return err
	}
	if err := files.end(); err != nil {
		return err
	}
	if f.output == "json" {
		return writeJSON(c.OutOrStdout(), runs)
	}
	if err := writeTable(paperOf(c.OutOrStdout(), f.wide), runs); err != nil || !f.explain {
		return err
	}
	for _, r := range runs {
		if err := writeExplanation(c.OutOrStdout(), r, f.senders); err != nil {
			return err
		}
	}
	return nil
}

// checkSenders refuses senders that the scenario doesn't have, and too many.
func (f *simFlags) checkSenders(s *scenario.Scenario) error {
	if len(f.senders) > mostSenders {
		return fmt.Errorf("--senders: %d senders; expected at most %d", len(f.senders), mostSenders)
	}
	for _, h := range f.senders {
		if !s.Sends(h) {
			return fmt.Errorf("--senders: host %d sends nothing in %s; expected the number of a host that does", h, s.Name)
		}
	}
	return nil
}

// completeScenario lists the built-in scenarios to the shell, which adds files.
func completeScenario(*cobra.Command, []string, string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, name := range scenarios.Names() {
		all = append(all, cobra.CompletionWithDesc(name, scenarios.Summary(name)))
	}
	return all, cobra.ShellCompDirectiveDefault
}

func responses() (names []string) {
	for r := scenario.ECN; r <= scenario.Proxy; r++ {
		names = append(names, r.String())
	}
	return names
}

// simRun is one simulation: a scenario, the values that a sweep set in it, and a response.
type simRun struct {
	scenario *scenario.Scenario
	swept    string
	response scenario.Response
	outcome  *scenario.Outcome
	brief    bool // nobody needs its series
}

// runs are all runs of a scenario: one for each response and combination of swept values.
func (f *simFlags) runs(c *cobra.Command, name string) (runs []*simRun, err error) {
	text, err := readScenario(name)
	if err != nil {
		return nil, err
	}
	base := make([]scenario.Setting, len(f.set))
	for i, s := range f.set {
		if base[i], err = scenario.ParseSetting(s); err != nil {
			return nil, fmt.Errorf("--set %w", err)
		}
	}
	combinations, err := sweeps(f.sweep)
	if err != nil {
		return nil, err
	}
	for n, swept := range combinations {
		s, err := scenario.Parse(name, text, append(base[:len(base):len(base)], swept...), readBeside)
		if err != nil {
			return nil, err
		}
		for _, w := range s.Warnings {
			if n == 0 {
				warn(c, w)
			}
		}
		more, err := f.ofResponses(s, swept)
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
	}
	return runs, nil
}

// ofResponses are the runs of a scenario: with all of its responses, or the chosen ones.
func (f *simFlags) ofResponses(s *scenario.Scenario, swept []scenario.Setting) (runs []*simRun, err error) {
	var names []string
	for _, r := range s.Responses {
		names = append(names, r.String())
	}
	for _, name := range f.responses {
		if err := yamldoc.CheckWord(name, names); err != nil {
			return nil, fmt.Errorf("--response, of this scenario: %w", err)
		}
	}
	label := make([]string, len(swept))
	for i, o := range swept {
		label[i] = o.Key + "=" + o.Value
	}
	for _, r := range s.Responses {
		if len(f.responses) == 0 || slices.Contains(f.responses, r.String()) {
			runs = append(runs, &simRun{scenario: s, swept: strings.Join(label, " "), response: r})
		}
	}
	return runs, nil
}

// sweeps are the combinations of swept values; one without settings if there is no sweep.
func sweeps(texts []string) (combinations [][]scenario.Setting, err error) {
	combinations = [][]scenario.Setting{nil}
	for _, text := range texts {
		all, err := scenario.ParseSetting(text)
		if err != nil {
			return nil, fmt.Errorf("--sweep %w", err)
		}
		var next [][]scenario.Setting
		for _, before := range combinations {
			for _, value := range values(all.Value) {
				next = append(next, append(before[:len(before):len(before)], scenario.Setting{Key: all.Key, Value: value}))
			}
		}
		combinations = next
	}
	return combinations, nil
}

// values splits at commas, except those in brackets.
func values(text string) (all []string) {
	begin, depth := 0, 0
	for i, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				all = append(all, text[begin:i])
				begin = i + 1
			}
		}
	}
	return append(all, text[begin:])
}

// readBeside reads a file that a scenario names.
func readBeside(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w; a scenario may read files of its own folder and of the current one (docs/operations.md, Sandbox)", err)
	}
	return text, err
}

// readScenario reads a file or, if there is none of that name, a built-in scenario.
func readScenario(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("the scenario's name is empty; expected a file, or a name that cnpgate sim --list shows")
	}
	text, err := os.ReadFile(name)
	if err == nil {
		return text, nil
	}
	if text, ok := scenarios.Find(name); ok { // also if there is a folder of that name
		return text, nil
	}
	if d, ok := scenario.FindDrawn(name); ok {
		return d.Text, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w; expected a scenario's file, or a name that cnpgate sim --list shows", err)
	}
	meant := yamldoc.Nearest(strings.TrimSuffix(name, ".yaml"), scenarios.Names())
	if meant != "" {
		return nil, fmt.Errorf("%s: there is no such file or built-in scenario; did you mean %s?", name, meant)
	}
	return nil, fmt.Errorf("%s: there is no such file or built-in scenario; expected a file, or a name that cnpgate sim --list shows", name)
}
