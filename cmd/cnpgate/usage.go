package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// explain makes a command and those below it answer mistakes in a command line: what is wrong, what was expected, and where the help is. It adds their examples.
func explain(c *cobra.Command) {
	c.DisableFlagsInUseLine = strings.Contains(c.Use, "[") // it lists them
	if examples := manualExamples[c.CommandPath()]; len(examples) > 0 {
		c.Example = "  " + strings.Join(examples, "\n  ")
	}
	if c.HasSubCommands() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = chooseCommand
	}
	for _, below := range c.Commands() {
		explain(below)
	}
}

// chooseCommand is the answer of a command that only has commands below it.
func chooseCommand(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return unknownCommand(c, args[0])
	case !c.HasParent():
		return c.Help()
	case removed[c.CommandPath()] != "":
		return fmt.Errorf("%s alone was removed; use %s", c.CommandPath(), removed[c.CommandPath()])
	}
	var lines strings.Builder
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			fmt.Fprintf(&lines, "\n  %-*s  %s", below.NamePadding(), below.Name(), below.Short)
		}
	}
	return fmt.Errorf("%q needs a command after it; expected one of:%s", c.Name(), &lines)
}

func unknownCommand(c *cobra.Command, word string) error {
	if name := c.CommandPath() + " " + word; removed[name] != "" {
		return fmt.Errorf("%s was removed; use %s", strings.TrimPrefix(name, "cnpgate "), removed[name])
	}
	if isCapture(word) && !c.HasParent() {
		return fmt.Errorf("unknown command %q for %s; did you mean cnpgate replay --health %s?", word, c.CommandPath(), word)
	}
	if meant := meantCommand(c, word); meant != "" {
		return fmt.Errorf("unknown command %q for %s; did you mean %s?", word, c.CommandPath(), meant)
	}
	return seeHelp(c, fmt.Errorf("unknown command %q for %s", word, c.CommandPath()))
}

// isCapture reports whether a file's name is that of a capture, perhaps a compressed one.
func isCapture(name string) bool { return strings.Contains(filepath.Base(name), ".pcap") }

// meantCommand finds the command that a word most likely means: one below c, or else one anywhere.
func meantCommand(c *cobra.Command, word string) string {
	if near := c.SuggestionsFor(word); len(near) > 0 { // that begin with it
		return c.CommandPath() + " " + near[0]
	}
	var words, paths []string
	for level := []*cobra.Command{c, c.Root()}; len(level) > 0; level = level[1:] {
		for _, below := range level[0].Commands() {
			for _, name := range append(below.SuggestFor, below.Name()) {
				words, paths = append(words, name), append(paths, below.CommandPath())
			}
			level = append(level, below)
		}
	}
	if i := slices.Index(words, yamldoc.Nearest(word, words)); i >= 0 {
		return paths[i]
	}
	return ""
}

// seeHelp adds to an error where the help is.
func seeHelp(c *cobra.Command, err error) error {
	return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
}

// flagError explains an error of the package that parses flags.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && (len(args) > 0 || removed[c.CommandPath()] != "") {
		return chooseCommand(c, args) // a flag of the command that was meant
	}
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, valueError(invalid))
	}
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()) // -socket is six flags of a letter
		if instead, _, _ := strings.Cut(strings.TrimPrefix(removedFlags[name], "--"), " "); c.Flags().Lookup(instead) != nil {
			return fmt.Errorf("--%s was removed; use %s", name, removedFlags[name])
		}
		if meant := yamldoc.Nearest(name, names); meant != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, meant)
		}
	}
	return seeHelp(c, err)
}

// valueError explains why a flag can't have a value.
func valueError(e *pflag.InvalidValueError) error {
	kind := e.GetFlag().Value.Type()
	bits, err := strconv.Atoi(strings.TrimLeft(kind, "uint"))
	switch {
	case kind == "duration":
		_, err := yamldoc.ParseDuration(e.GetValue())
		return err
	case kind == "int":
		return fmt.Errorf("%q is not a whole number; expected one such as 1", e.GetValue())
	case kind == "bool":
		return fmt.Errorf("%q is not known; expected true or false", e.GetValue())
	case kind == "uint", err == nil:
		return fmt.Errorf("%q is not a whole number from 0 to %d", e.GetValue(), uint64(math.MaxUint64)>>((64-bits)%64))
	}
	return e.Unwrap() // of a flag that checks its value
}

// validateFlags is cobra's check of the flags that are required or exclude each other, with the place of the help.
func validateFlags(c *cobra.Command, _ []string) error {
	if err := requireFlags(c, requiredFlags(c)...); err != nil {
		return err
	}
	err := c.ValidateFlagGroups()
	if err == nil {
		return nil
	}
	if m := ofGroup.FindStringSubmatch(err.Error()); m != nil {
		group, some := "--"+strings.ReplaceAll(m[1], " ", ", --"), "--"+strings.ReplaceAll(m[3], " ", " and --")
		switch m[2] {
		case "is required":
			err = fmt.Errorf("missing: one of %s", group)
		case "are set they must":
			err = fmt.Errorf("missing: %s; expected all of %s, or none", some, group)
		default:
			err = fmt.Errorf("%s exclude each other; expected one of them", some)
		}
	}
	return seeHelp(c, err)
}

// ofGroup has the parts of cobra's errors about a group of flags: the group, what is wrong, and about which of them.
var ofGroup = regexp.MustCompile(`group \[([^]]*)\] (is required|are set they must|are set none)[^[]*(?:\[([^]]*)\])?`)

// requiredFlags are the flags that are always required.
func requiredFlags(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 {
			names = append(names, f.Name)
		}
	})
	return names
}

// requireFlags names those of the flags that are not given.
func requireFlags(c *cobra.Command, names ...string) error {
	var missing []string
	for _, name := range names {
		if !c.Flags().Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return seeHelp(c, fmt.Errorf("missing: %s; expected with a value", strings.Join(missing, ", ")))
}

// fileFlags are the flags that most likely precede a file with one of these suffixes.
var fileFlags = map[string]string{".yaml": "config", ".yml": "config", ".pcap": "write", ".pcapng": "write", ".sock": "socket"}

// noArguments refuses arguments, most of which lack the flag before them.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unexpected argument %q; expected flags only", args[0])
	if name := fileFlags[filepath.Ext(args[0])]; c.Flags().Lookup(name) != nil {
		return fmt.Errorf("%w; did you mean --%s %s?", err, name, args[0])
	}
	return seeHelp(c, err)
}

// textFlag is a flag whose text is read when it is given.
type textFlag struct {
	text, kind string
	read       func(text string) error
}

func (f *textFlag) String() string { return f.text }

func (f *textFlag) Type() string { return f.kind }

func (f *textFlag) Set(text string) error {
	f.text = text
	return f.read(text)
}

// valueFlag is a flag whose text sets a value; text is that of the default.
func valueFlag[T any](to *T, text, kind string, read func(text string) (T, error)) *textFlag {
	return &textFlag{text, kind, func(text string) (err error) {
		*to, err = read(text)
		return err
	}}
}

// checkedFlag is a flag whose text is also checked.
func checkedFlag(value *string, check func(text string) error) *textFlag {
	return valueFlag(value, *value, "string", func(text string) (string, error) { return text, check(text) })
}

// listFlag is a flag whose texts, divided by commas, are added to a list.
func listFlag[T any](to *[]T, read func(text string) (T, error)) *textFlag {
	return &textFlag{kind: "strings", read: func(text string) error {
		for one := range strings.SplitSeq(text, ",") {
			value, err := read(one)
			if err != nil {
				return err
			}
			*to = append(*to, value)
		}
		return nil
	}}
}

// parseHost reads the address of a host.
func parseHost(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	switch p, prefix := netip.ParsePrefix(text); {
	case err == nil && a.Zone() == "":
		return a.Unmap(), nil
	case err == nil:
		return a, fmt.Errorf("%q has a zone, and no frame has one; expected %v", text, a.WithZone(""))
	case prefix == nil:
		return a, fmt.Errorf("%q is a prefix; expected an address, such as %v", text, p.Addr())
	}
	return a, fmt.Errorf("%q is not an address; expected one such as 10.1.0.1", text)
}

// checkHosts refuses what isn't the addresses of two hosts that can send to each other.
func checkHosts(source, destination string) error {
	a, err := parseHost(source)
	if err != nil {
		return err
	}
	b, err := parseHost(destination)
	if err != nil {
		return err
	}
	if a.Is4() != b.Is4() {
		return fmt.Errorf("%v and %v are of two IP versions; expected addresses of one", a, b)
	}
	return nil
}

// hosts reads an address or a prefix.
func hosts(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := yamldoc.ParsePrefix(text)
	if err != nil {
		err = fmt.Errorf("%w, or an address alone", err)
	}
	return p, err
}

// wordFlag adds a flag that takes one of some words, which the shell completes.
func wordFlag(c *cobra.Command, value *string, name, short, usage string, words ...string) {
	isWord := func(text string) error { return yamldoc.CheckWord(text, words) }
	c.Flags().VarP(checkedFlag(value, isWord), name, short, usage+": "+yamldoc.Either(words))
	complete(c, name, words...)
}

// outputFlag adds -o, the form of the output.
func outputFlag(c *cobra.Command, output *string) {
	*output = "text"
	wordFlag(c, output, "output", "o", "form of the output", "text", "json")
}

// complete makes the shell complete a flag's values.
func complete(c *cobra.Command, flag string, words ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag exists
	}
}
