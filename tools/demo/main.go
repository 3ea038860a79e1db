// Demo is scripts/demo's helper. It writes the gateway's configuration for a run of the demo, and prints the load to send. From the
// captures on both sides and the reports of the gateway and the endpoints, it shows what happened and whether it was right. The script
// makes the namespaces and starts the processes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("a check failed")

func command(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: demo config|load|show [flags]")
	}
	f := flag.NewFlagSet(args[0], flag.ExitOnError)
	dir := f.String("dir", ".", "folder with a folder for each run: report.json, send.json, and the captures")
	format := f.String("format", off, "the format that the gateway notifies the sender in; off: it doesn't")
	core := f.Int("core", 0, "the gateway's core")
	seconds := f.Float64("seconds", 4, "how long to send")
	svg := f.String("svg", "", "file to draw the runs in")
	_ = f.Parse(args[1:]) // ExitOnError
	load := newLoad(*seconds)
	switch args[0] {
	case "config":
		fmt.Print(configuration(*format, *core))
	case "load":
		fmt.Println(load)
	case "show":
		return show(os.Stdout, *dir, *svg, load)
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
	return nil
}

func show(w io.Writer, dir, svg string, load load) error {
	runs, err := readRuns(dir)
	if err != nil {
		return err
	}
	if svg != "" {
		if err := draw(svg, runs, load); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\nHOSTS AND WAN QUEUE, %s\n", load.explain())
	showTable(w, runs, load)
	fmt.Fprint(w, "\nNOTIFICATIONS, as captured on the sender's side\n")
	showNotifications(w, runs)
	fmt.Fprintf(w, "\nVERDICT, with figures of the runs in this order: %s\n", strings.Join(append([]string{off}, formats...), "; "))
	good := true
	for _, v := range judge(runs, load) {
		word := "PASS"
		if !v.ok {
			word, good = "FAIL", false
		}
		fmt.Fprintf(w, "  %s  %s: %s\n", word, v.what, v.got)
	}
	if !good {
		return errFailed
	}
	return nil
}
