package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
)

type topFlags struct {
	showFlags
	filter   flowFilter
	interval time.Duration
	by, sort string
	limit    uint32
	count    uint32
}

// topRows are the senders and flows that top reads at a time, unless it is to print more, which the API bounds: those with the largest values.
const topRows = 1000

func topCommand() *cobra.Command {
	var f topFlags
	c := &cobra.Command{
		Use:   "top [--by port|queue|sender|flow] [--sort rate|queue|notified|name] [FILTERS] [--interval TIME] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Show live what the running gateway's ports, queues, senders and flows do",
		Long: `Shows the ports, and below them the queues, senders or flows, again at each --interval until q or Ctrl-C: rates, bytes in the queue, notifications and how
senders react. In a pipe it prints each time below the one before; --count 1 prints once.

  RX, TX       rate of the frames that arrive at the port, and that leave by it
  LOAD, FULL   TX as a part of the port's rate, QUEUE as a part of its capacity
  NOTIFIED     notifications a second, in observe mode those of a port that would have been sent; of a queue those of its present or latest episode
  SLOWED       notified senders, or flows of the sender, that have slowed down, of those of which it is known
  REACTION     change of the flow's rate since its first notification in its latest episode; "-": not known

Of more than 1000 senders or flows, those with the largest values are shown: the highest rates, most queued bytes or most notifications so far, with --sort name the highest
rates. In a terminal these keys act at once: p, u, s, f show ports, queues, senders, flows; r, d, n, a sort by rate, queue depth, notifications, name; q quits. On a
display of less than 120 columns long addresses are cut at the front. -o json prints one object per line.`,
		RunE: func(c *cobra.Command, _ []string) error { return f.top(c) },
	}
	wordFlag(c, &f.by, "by", "", "what to show", topKinds...)
	wordFlag(c, &f.sort, "sort", "", "what comes first", topSorts...)
	f.by, f.sort = "flow", "rate"
	f.filter.addFlow(c)
	c.Flags().DurationVar(&f.interval, "interval", time.Second, "time between two looks, during which rates are measured")
	c.Flags().Uint32VarP(&f.limit, "limit", "n", 0, "print at most this many rows, up to 4096; 0: as many as fit, in a pipe 20")
	c.Flags().Uint32Var(&f.count, "count", 0, "end after this many looks; 0: don't")
	outputFlag(c, &f.output)
	return f.ofGateway(c)
}

func (f *topFlags) top(c *cobra.Command) error {
	if f.interval < leastWatch || f.interval > api.MaxInterval {
		return fmt.Errorf("--interval is %v, expected %v to %v", f.interval, leastWatch, api.MaxInterval)
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) error { return f.run(ctx, c, client) })
}

func (f *topFlags) run(ctx context.Context, c *cobra.Command, client *api.Client) error {
	first, err := f.read(ctx, client, f.sort, true) // an error belongs below the command line, not on a screen that vanishes
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	to, keys := c.OutOrStdout(), (<-chan byte)(nil)
	var s *screen
	if f.output == "text" {
		s = newScreen(to, os.Stdin)
	}
	if s != nil {
		defer s.restore()
		keys = s.pressed()
	}
	looks := make(chan look, 1)
	return f.follow(ctx, to, s, keys, first, looks, func() {
		go func(sort string) {
			r, err := f.read(ctx, client, sort, false)
			looks <- look{r, err}
		}(f.sort)
	})
}

// look is one reading, or why there is none.
type look struct {
	reading *reading
	err     error
}

// read takes the interval, for which the gateway measures rates, except the first time. It measures those of senders and of flows one after the other.
func (f *topFlags) read(ctx context.Context, client *api.Client, sort string, first bool) (r *reading, err error) {
	values := f.filter.values()
	values.Set("sort", topValues[sort])
	values.Set("limit", strconv.FormatUint(uint64(max(f.limit, topRows)), 10))
	switch {
	case !first:
		values.Set("interval", (f.interval / 2).String())
	case topValues[sort] == "rate": // not known yet; most of the fastest ones have sent most
		values.Set("sort", "bytes")
	}
	r = &reading{}
	read := reads{as(&r.flows, api.Path(api.FlowsPath, values)), as(&r.senders, api.Path(api.SendersPath, values)), as(&r.counters, api.CountersPath)}
	if err := read.from(ctx, client); err != nil {
		return nil, err
	}
	r.at = time.Now()
	read = reads{as(&r.episodes, api.EpisodesPath), as(&r.health, api.HealthPath), as(&r.modes, api.ModePath), as(&r.rdma, api.RDMAPath+"?bad=true")}
	return r, read.from(ctx, client)
}

// follow shows each reading that ask has asked for, until the context ends, the user quits, or there were enough.
func (f *topFlags) follow(ctx context.Context, to io.Writer, s *screen, keys <-chan byte, before *reading, looks <-chan look, ask func()) error {
	var view *topView
	ask()
	for n := uint32(0); f.count == 0 || n < f.count; {
		select {
		case <-ctx.Done():
			return nil
		case l := <-looks:
			if l.err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return l.err
			}
			view, before = compare(before, l.reading), l.reading
			if n++; f.count == 0 || n < f.count {
				ask()
			}
		case key := <-keys:
			if f.press(key) {
				return nil
			}
		}
		if view == nil {
			continue
		}
		if err := f.show(to, s, view); err != nil {
			return err
		}
	}
	return nil
}

// press obeys a key; true to quit.
func (f *topFlags) press(key byte) (quit bool) {
	const ctrlC = "\x03"
	if at := strings.IndexByte("pusf", key); at >= 0 {
		f.by = topKinds[at]
	}
	if at := strings.IndexByte("rdna", key); at >= 0 {
		f.sort = topSorts[at]
	}
	return strings.IndexByte("qQ"+ctrlC, key) >= 0
}

// show prints a view, or replaces the one on the screen.
func (f *topFlags) show(to io.Writer, s *screen, v *topView) error {
	v.sort(f.by, f.sort)
	if f.output == "json" {
		if n := int(f.limit); n > 0 {
			v.Flows, v.Senders = v.Flows[:min(n, len(v.Flows))], v.Senders[:min(n, len(v.Senders))]
		}
		return json.NewEncoder(to).Encode(v)
	}
	const inPipe, others = 20, 7 // lines beside ports and rows
	most := int(min(f.limit, math.MaxInt32))
	if s == nil {
		if most == 0 {
			most = inPipe
		}
		err := v.print(to, f.by, most, 0)
		if err == nil {
			_, err = fmt.Fprintln(to)
		}
		return err
	}
	columns, lines := s.size()
	if fits := max(lines-others-len(v.Ports), 1); most == 0 || most > fits {
		most = fits
	}
	var text bytes.Buffer
	if err := v.print(&text, f.by, most, columns); err != nil {
		return err
	}
	return s.draw(text.String())
}

// topSorts and topKinds are the words of top's flags, in the order of their keys, topValues are what the API sorts by.
var (
	topSorts  = []string{"rate", "queue", "notified", "name"}
	topValues = map[string]string{"rate": "rate", "queue": "queued", "notified": "notifications", "name": "rate"}
	topKinds  = []string{"port", "queue", "sender", "flow"}
)

const (
	narrowAddress = 15  // the longest address that is printed whole on a narrow display
	wideDisplay   = 120 // columns of one that isn't narrow
)

// print prints a view: a line about the gateway, its ports, and the rows of one kind, at most so many. A display of some columns, 0 for any number, has the columns of the
// tables that fit, and if it is narrow, long addresses are cut at the front.
func (v *topView) print(out io.Writer, kind string, most, width int) error {
	to, narrow := paper{out, width}, width > 0 && width < wideDisplay
	suppressed := strconv.FormatUint(v.Suppressed, 10) + "/s"
	if v.Top != "" {
		suppressed += " (" + v.Top + ")"
	}
	notified := "notified"
	if len(v.Observing) > 0 {
		notified = "observe mode (" + strings.Join(v.Observing, ", ") + "): would notify"
	}
	line := fmt.Sprintf("%s  %s  %s %d/s  suppressed %s%s", v.Gateway, v.Time.Local().Format(time.TimeOnly), notified, v.Notified, suppressed, v.RDMA.text())
	if width > 0 && utf8.RuneCountInString(line) > width { // else its parts stay apart
		line = strings.Join(wrapped(line, width), "\n")
	}
	if _, err := fmt.Fprint(to, line, "\n\n"); err != nil {
		return err
	}
	if kind != "port" {
		ports, _ := v.table(to, "port", narrow, len(v.Ports))
		if err := ports.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	t, all := v.table(to, kind, narrow, most)
	err := t.Flush()
	if err == nil && all > most {
		_, err = fmt.Fprintf(to, "and %d others\n", all-most)
	}
	return err
}

// table is that of one kind, of at most so many rows, of which there are all.
func (v *topView) table(to io.Writer, kind string, narrow bool, most int) (t *table, all int) {
	switch kind {
	case "port":
		return topTable(to, portsOfTop, v.Ports, narrow, most), len(v.Ports)
	case "queue":
		return topTable(to, queuesOfTop, v.Queues, narrow, most), len(v.Queues)
	case "sender":
		return topTable(to, sendersOfTop, v.Senders, narrow, most), v.allSenders
	}
	return topTable(to, flowsOfTop, v.Flows, narrow, most), v.allFlows
}

func topTable[T any](to io.Writer, of *columns.Table[T], rows []T, narrow bool, most int) *table {
	shown := of.Text()
	t := newTable(to, strings.Join(headers(shown), "\t"), leastOf(shown)...)
	t.gap, t.silent = 1, true
	for i := range rows[:min(most, len(rows))] {
		row := columns.Cells(shown, &rows[i])
		for k := range row {
			if narrow && shown[k].As == columns.Host && len(row[k]) > narrowAddress {
				row[k] = "~" + row[k][len(row[k])-narrowAddress+1:]
			}
		}
		t.line(row)
	}
	return t
}

// partOf is n as a part of all; nil of none.
func partOf(n, all uint64) *float64 {
	if all == 0 {
		return nil
	}
	part := float64(n) / float64(all)
	return &part
}

// part is n of all, "-" of none.
func part(n, all int) string {
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", n, all)
}
