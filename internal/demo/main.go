// Demo is scripts/demo's helper: it writes the gateway's configuration for the demo, plays the data-centre hosts' captured
// traffic on an interface, and reads from what was captured on both sides, and from the gateway's report, what happened and
// whether it was right. It makes no namespaces and starts no process; the script does.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: demo config|send|show [flags]")
	}
	f := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	captures := f.String("captures", "testdata/captures", "folder of the captured traffic")
	dir := f.String("dir", ".", "folder of the run: config.yaml, report.json, dc.pcap, wan.pcap")
	rate := f.Float64("rate", 20, "rate of the WAN port, Mbit/s")
	offered := f.Float64("offered", 80, "greatest rate the hosts send at, Mbit/s")
	tolerance := f.Float64("tolerance", 1, "how far from its rate the WAN port may be, percent")
	seconds := f.Float64("seconds", 4, "how long they send")
	core := f.Int("core", 0, "the gateway's core")
	iface := f.String("interface", "", "interface to send on")
	_ = f.Parse(os.Args[2:]) // ExitOnError
	hosts, err := loadHosts(*captures)
	if err != nil {
		fail(err)
	}
	switch os.Args[1] {
	case "config":
		fmt.Print(configuration(hosts, *rate, *core))
	case "send":
		err = send(hosts, *iface, *offered*1e6, time.Duration(*seconds*float64(time.Second)))
	case "show":
		var ok bool
		if ok, err = show(os.Stdout, hosts, *dir, *offered, *tolerance); err == nil && !ok {
			os.Exit(1)
		}
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "demo:", why)
	os.Exit(1)
}
