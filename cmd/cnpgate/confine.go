package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnpgate/cnpgate/internal/sandbox"
)

// parsers are the commands that read files of unknown origin, with the flags that name files to write.
var parsers = map[string][]string{
	"decode": {},
	"replay": {"report", "forwarded", "emitted"},
	"sim":    {"csv", "svg", "web"},
	"web":    {},
}

// confine limits a command that parses files to those files: it has no network, except to serve its page at a loopback address, and writes only to the directories of its
// outputs. Where that isn't possible, it warns.
func confine(c *cobra.Command, args []string) error {
	outputs, parses := parsers[c.Name()]
	if !parses || c.Parent() != c.Root() || c.Name() == "web" && len(args) == 0 { // the page of a running gateway connects to it
		return nil
	}
	p := sandbox.Paths{Read: []string{os.DevNull, "/etc/localtime", "/usr/share/zoneinfo", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", "/sys/kernel/mm"}}
	p.Read = append(p.Read, args...)
	if c.Name() == "sim" && len(args) > 0 {
		p.Read = append(p.Read, ".", filepath.Dir(args[0])) // where a scenario's NIC profiles are
	}
	for _, name := range args {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			p.Write = append(p.Write, os.TempDir()) // the copy of a stream
		}
	}
	serves := c.Name() == "web"
	c.Flags().Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case f.Name == "web" && (value == "true" || value == served):
			serves = true
		case f.Name == "config":
			p.Read = append(p.Read, value)
		case f.Name == "set" || f.Name == "sweep":
			p.Read = append(p.Read, strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("=,[]", r) })...)
		}
	})
	for _, name := range outputs {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.Type() == "string" {
			p.Write = append(p.Write, writtenBy(f.Value.String()))
		}
	}
	if err := sandbox.Confine(p, serves); err != nil {
		warn(c, fmt.Errorf("the command is not confined to its files: %w", err))
	}
	return nil
}

// writtenBy is what is written to when a file is made: its directory. A device or a pipe is written to as it is.
func writtenBy(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeSocket == 0 {
		return file
	}
	return filepath.Dir(file)
}
