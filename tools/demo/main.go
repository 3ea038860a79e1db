// Demo is scripts/demo's helper. It writes the gateway's configuration for a run of the demo, and prints the load to send. From the
// captures on both sides and the reports of the gateway and the endpoints, it shows what happened and whether it was right. The script
// makes the namespaces and starts the processes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
	"github.com/cnpgate/cnpgate/internal/units"
)

func main() {
	err := command(os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "demo:", err)
	if errors.Is(err, errBusy) {
		os.Exit(inconclusive)
	}
	os.Exit(1)
}

var (
	errFailed = errors.New("a check failed, and other work on the machine doesn't explain it")
	errBusy   = errors.New("inconclusive: a check failed, but this machine was too busy to say why; run the demo again when it is idle")
)

const inconclusive = 75 // EX_TEMPFAIL (sysexits.h)

func command(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: demo config|load|watch|show [flags]")
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
	case "watch":
		return watch(*dir)
	case "show":
		return show(os.Stdout, *dir, *svg, load)
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
	return nil
}

// coresFile has what kept the runs' threads off their cores; it is empty if nothing did.
const coresFile = "cores.txt"

// watch notes, until SIGTERM, what kept the threads of its process group off their cores.
func watch(dir string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	cores := ontime.Watch(syscall.Getpgrp())
	<-stop
	cores.End()
	text := ""
	if cores.Busy() {
		text = cores.String()
	}
	return os.WriteFile(filepath.Join(dir, coresFile), []byte(text), 0o600)
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
	fmt.Fprintln(w, "  sent, arrived: Mbps on the line; queue: the longest of samples every 50 ms, KB; lost: packets of those sent; notified: notifications")
	for pair := range slices.Chunk(runs, 2) { // of which a terminal is wide enough
		showTable(w, pair, load)
	}
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
	return conclude(w, dir, good)
}

// conclude is the error of a demo: what failed on a machine that kept the runs off their cores is inconclusive.
func conclude(w io.Writer, dir string, good bool) error {
	if good {
		return nil
	}
	busy, err := os.ReadFile(filepath.Join(dir, coresFile))
	if err != nil || len(busy) == 0 {
		return errors.Join(err, errFailed)
	}
	fmt.Fprintf(w, "\n%s", busy)
	return errBusy
}

// The demo's runs: the same load without notifications, and with each format, first the one that today's NICs obey.
const off = "off"

var formats = []string{"standard-cnp", "long-haul-cnp", "fast-cnp"}

// The addresses, as scripts/demo assigns them to the endpoints. gateway6 is the source of the notifications.
var (
	sender, receiver, gateway6 = ip("fd00:18::2"), ip("fd00:18::1"), ip("fd00:18::fe")
	senderMAC                  = [6]byte{2, 0, 0, 0x18, 0, 2}
)

// The endpoints' default QPs: the sender's i-th is connected to the receiver's i-th.
const (
	qps                            = 4
	senderFirstQP, receiverFirstQP = 0x100, 0x200
)

func ip(s string) packet.Addr { return packet.AddrFrom(netip.MustParseAddr(s)) }

// WAN port, in bit/s and bytes. Without notifications, a full queue delays by 400 ms.
const (
	wanRate  = 100_000_000
	kMax     = 100_000
	capacity = 5_000_000
)

// configuration is the gateway's configuration for a run: two af_packet ports without hugepages. It doesn't list the sender's QPs: the
// gateway learns them from the traffic.
func configuration(format string, core int) string {
	text := fmt.Sprintf(`gateway: {name: demo, ipv4: 198.18.0.254, ipv6: "%v"}
dpdk: {hugepages: false, workers: [%d], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=fabric", role: fabric, peer: wan, rate: 10Gbps, mtu: 4200}
  - {name: wan, device: "net_af_packet1,iface=wan", role: wan, peer: fabric, rate: %dbps, rtt: 2ms, mtu: 4200, queue_capacity: %dB, profile: demo}
profiles:
  demo: {mode: thresholds, k_base: %dB}
flows: {capacity: 1Ki}
`, gateway6.Netip(), core, wanRate, capacity, kMax)
	if format == off {
		return text
	}
	return text + fmt.Sprintf("notifications: {%s: {enabled: true}}\nendpoints:\n  - {prefix: \"%v/128\", accepts: [%s]}\n", strings.ReplaceAll(format, "-", "_"), sender.Netip(), format)
}

// load is what the sender offers: half of the WAN port's rate, three times that rate, and half again.
type load []phase

type phase struct {
	name   string
	rate   int64 // bit/s
	length time.Duration
}

// newLoad makes a load of this many seconds. Each phase is a whole number of the table's intervals.
func newLoad(seconds float64) load {
	part := func(n int) time.Duration {
		return time.Duration(seconds*float64(time.Second)).Truncate(intervals*time.Millisecond) * time.Duration(n) / intervals
	}
	return load{{"before", wanRate / 2, part(2)}, {"during", 3 * wanRate, part(6)}, {"after", wanRate / 2, part(2)}}
}

// intervals is the number of lines in the table of a run.
const intervals = 10

// String formats the load for an endpoint's --rate.
func (l load) String() string {
	text := ""
	for i, p := range l {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("%dbps:%v", p.rate, p.length)
	}
	return text
}

func (l load) explain() string {
	return fmt.Sprintf("with %s, then %s, then %s offered to a WAN port of %s", units.Rate(l[0].rate), units.Rate(l[1].rate), units.Rate(l[2].rate), units.Rate(float64(wanRate)))
}

// overload is when more than the WAN port's rate is offered, counted from the first frame.
func (l load) overload() (from, to time.Duration) { return l[0].length, l[0].length + l[1].length }

// settled is when the sender has had time to slow down.
func (l load) settled() time.Duration {
	const part = 4
	return l[0].length + l[1].length/part
}

// interval is the length of one line of the table.
func (l load) interval() time.Duration { return (l[0].length + l[1].length + l[2].length) / intervals }

// phaseAt is the name of the phase at a time.
func (l load) phaseAt(at time.Duration) string {
	i := slices.IndexFunc(l, func(p phase) bool {
		at -= p.length
		return at < 0
	})
	if i < 0 {
		return ""
	}
	return l[i].name
}
