package replay_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/rdmanet"
)

var (
	drawnDump  = flag.String("dump", "", "write the captures that TestHealthOfDrawn finds misjudged, and their truth, to this directory")
	drawnTable = flag.String("table", "", "write the tables of TestHealthOfDrawn to this page")
	drawnSeed  = flag.Uint64("drawn", 0, "let TestHealthOfDrawn draw only the capture of this seed, and print all that is known of it")
	drawnCount = flag.Int("captures", 500*effort.Short+50*effort.Race+10_000*effort.Long, "how many captures TestHealthOfDrawn draws")
	drawnFirst = flag.Uint64("first", 39_000_000, "the seed of the first capture that TestHealthOfDrawn draws")
)

// The goals for any drawn captures, in percent: precision and recall of each verdict; causes of retransmitted packets that are right or unknown, and those that
// are wrong at most; captures in which nothing is wrong that have a verdict at most.
const (
	goalPrecision   = 99.0
	goalRecall      = 95.0
	goalCauses      = 98.0
	goalWrongCauses = 0.5
	goalFalseAlarms = 0.0
)

// bounds are what is reached, and must not become worse, as far as it is less than the goal.
type bounds struct {
	causes, wrongCauses, falseAlarms float64
	verdicts                         map[string]rates // the least; one that isn't listed reaches the goals
}

// rates is precision and recall.
type rates struct{ precision, recall float64 }

// reached is by 10,000 captures, reachedByFew by those of the default run, which are another sample.
var (
	reached = bounds{goalCauses, goalWrongCauses, goalFalseAlarms, map[string]rates{
		health.IgnoresCNP:     {goalPrecision, 88.5},
		health.LossUpstream:   {98, 93.5},
		health.LossDownstream: {goalPrecision, 93},
		health.AckLoss:        {96.5, 78.5},
		health.Reordering:     {goalPrecision, 89},
		health.SlowReceiver:   {98.5, 79},
		health.Unexplained:    {98.5, goalRecall},
		health.Incomplete:     {goalPrecision, 94.5},
	}}
	reachedByFew = bounds{goalCauses, goalWrongCauses, goalFalseAlarms, map[string]rates{
		health.IgnoresCNP:   {goalPrecision, 90},
		health.AckLoss:      {goalPrecision, 80},
		health.SlowReceiver: {goalPrecision, 60},
		health.Unexplained:  {96, goalRecall},
	}}
)

// notDrawn are verdicts that no drawn capture shows, or that are due in none, as the cause is known.
var notDrawn = []string{health.Unexplained, health.MTUDiffers, health.GatewayDrops, health.PartialPath, health.Unreachable, health.RoCEv1}

// fewestForBounds is how many captures tell something about shares.
const fewestForBounds = 500

// drawnPlaces is how many kinds of scenes are listed of what is misjudged.
const drawnPlaces = 6

// tally counts claims of a verdict.
type tally struct{ claimed, right, due, found int }

func (t *tally) add(o *tally) {
	t.claimed, t.right, t.due, t.found = t.claimed+o.claimed, t.right+o.right, t.due+o.due, t.found+o.found
}

// causes counts retransmitted packets: those whose cause is right, unknown, or wrong; missed are not counted by the diagnosis at all.
type causes struct{ all, right, unknown, wrong, missed uint64 }

func (c *causes) add(o *causes) {
	c.all, c.right, c.unknown, c.wrong, c.missed = c.all+o.all, c.right+o.right, c.unknown+o.unknown, c.wrong+o.wrong, c.missed+o.missed
}

// judged is the comparison of a diagnosis with the truth.
type judged struct {
	seed      uint64
	verdicts  map[string]*tally
	misjudged map[string][]string // where, by what
	wrong     []rdmanet.Claim     // claimed, and not so
	missed    []rdmanet.Claim     // it is so, the capture shows it, and it isn't claimed
	causes    map[string]*causes  // by the true cause; a wrong one by the cause that is claimed
	pairs     pairs
	healthy   bool // no verdict holds
	details   []string
}

// TestHealthOfDrawn: the verdicts and causes for captures of drawn networks, of which all is known. To see the tables, and what is known of one capture, and
// to keep it:
//
//	go test ./control/replay -run TestHealthOfDrawn -v
//	go test ./control/replay -run TestHealthOfDrawn -v -drawn 39000123 -dump DIR
//	go test ./control/replay -run TestHealthOfDrawn -v -first 1 -captures 2000
func TestHealthOfDrawn(t *testing.T) {
	if *drawnSeed != 0 {
		j := judgeDrawn(t, *drawnSeed)
		t.Log(strings.Join(j.details, "\n"))
		return
	}
	all := make([]*judged, *drawnCount)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(*drawnCount); i = next.Add(1) - 1 {
				all[i] = judgeDrawn(t, *drawnFirst+uint64(i))
			}
		})
	}
	wait.Wait()
	reportDrawn(t, all)
}

var unmeasured = regexp.MustCompile(` 0 ns| -\d|NaN`)

// judgeDrawn draws a capture, and compares its diagnosis with the truth.
func judgeDrawn(t *testing.T, seed uint64) *judged {
	c := rdmanet.Draw(seed)
	path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.pcap", seed))
	writeDrawn(t, c, path)
	capture, err := replay.Open(path, nil)
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return &judged{seed: seed}
	}
	defer os.Remove(path)
	defer capture.Close()
	r, err := diagnosed(capture, replay.HealthOptions{Connections: 64})
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return &judged{seed: seed}
	}
	for _, v := range r.Verdicts {
		if text := " " + v.Evidence + " " + v.Advice; unmeasured.MatchString(text) {
			t.Errorf("seed %d: %s names a time or share that wasn't measured: %s", seed, v.Name, text)
		}
	}
	j := &judged{seed: seed, verdicts: map[string]*tally{}, misjudged: map[string][]string{}, causes: map[string]*causes{}}
	j.compareVerdicts(c, r)
	j.comparePairs(c, r)
	for i, conn := range c.Network.Conns {
		if i > 0 && conn.Again(c.Network.Conns[i-1]) {
			continue
		}
		for _, h := range conn.Half {
			j.compareCauses(c, h, r)
		}
	}
	j.describe(c, r)
	if *drawnDump != "" && len(j.wrong)+len(j.missed) > 0 || *drawnDump != "" && *drawnSeed != 0 {
		kept := filepath.Join(*drawnDump, fmt.Sprint(seed))
		writeDrawn(t, c, kept+".pcap")
		if err := os.WriteFile(kept+".txt", []byte(strings.Join(j.details, "\n")+"\n"+c.Truth()), 0o644); err != nil {
			t.Error(err)
		}
	}
	if *drawnSeed == 0 {
		j.details = nil
	}
	return j
}

func writeDrawn(t *testing.T, c *rdmanet.Capture, path string) {
	f, err := os.Create(path)
	if err == nil {
		err = cmp.Or(c.Write(f), f.Close())
	}
	if err != nil {
		t.Errorf("seed %d: %v", c.Seed, err)
	}
}

func (j *judged) of(verdict string) *tally {
	if j.verdicts[verdict] == nil {
		j.verdicts[verdict] = &tally{}
	}
	return j.verdicts[verdict]
}

// subjectOf are the addresses of a verdict's subject: "A -> B", "A -> B, VLAN 1" or "A".
func subjectOf(subject string) string {
	hosts, _, _ := strings.Cut(subject, ", ")
	return rdmanet.Subject(strings.Split(hosts, " -> ")...)
}

// where describes a connection and the capture, to group what is misjudged.
func where(c *rdmanet.Capture, conn *rdmanet.Conn) string {
	path, repeats := "round trip below 100 us", "go-back-N"
	if conn.Path.Trip() >= 100*usec {
		path = "longer"
	}
	if conn.NIC.Selective {
		repeats = "selective"
	}
	return fmt.Sprintf("%v, captured: %s, %s, %s", conn.Scene.Kind, c.View.Name, path, repeats)
}

func (j *judged) note(c *rdmanet.Capture, conn *rdmanet.Conn, what string) {
	j.misjudged[what] = append(j.misjudged[what], where(c, conn))
}

// about is the first connection between the hosts of a claim.
func about(c *rdmanet.Capture, claim rdmanet.Claim) *rdmanet.Conn {
	for _, conn := range c.Network.Conns {
		for _, h := range conn.Host {
			if slices.Contains(strings.Fields(claim.Subject), h.Addr.String()) {
				return conn
			}
		}
	}
	return c.Network.Conns[0]
}

// pairs counts connections of which the capture shows both directions.
type pairs struct{ all, right, wrong int }

func (j *judged) comparePairs(c *rdmanet.Capture, r *health.Report) {
	peers := map[string]uint32{}
	for _, conn := range c.Network.Conns {
		peers[fmt.Sprint(conn.Host[0].Addr, conn.QP[0], conn.Host[1].Addr)] = conn.QP[1]
		peers[fmt.Sprint(conn.Host[1].Addr, conn.QP[1], conn.Host[0].Addr)] = conn.QP[0]
	}
	for _, o := range r.Connections {
		a, b := o.Ends[0], o.Ends[1]
		switch want := peers[fmt.Sprint(a.IP, a.QP, b.IP)]; {
		case !o.Paired:
		case b.QP == want:
			j.pairs.right++
		default:
			j.pairs.wrong++
			for _, conn := range c.Network.Conns {
				if conn.QP[0] == a.QP || conn.QP[1] == a.QP {
					j.note(c, conn, "pair wrong")
				}
			}
		}
	}
	for _, conn := range c.Network.Conns {
		if c.Shows(conn) {
			j.pairs.all++
			if !slices.ContainsFunc(r.Connections, func(o health.Record) bool {
				return o.Paired && (o.Ends[0].QP == conn.QP[0] && o.Ends[0].IP == conn.Host[0].Addr || o.Ends[1].QP == conn.QP[0] && o.Ends[1].IP == conn.Host[0].Addr)
			}) {
				j.note(c, conn, "pair missed")
			}
		}
	}
}

// holds reports whether a claim is true; one about hosts or prefixes is if it is of two hosts among them.
func holds(claim rdmanet.Claim, all map[rdmanet.Claim]bool) bool {
	for o := range all {
		if o.Verdict != claim.Verdict {
			continue
		}
		hosts := strings.Fields(o.Subject)
		if !slices.ContainsFunc(strings.Fields(claim.Subject), func(s string) bool {
			return !slices.ContainsFunc(hosts, func(h string) bool { return s == h || within(s, h) })
		}) {
			return true
		}
	}
	return false
}

// within reports whether a host is in a prefix, if that is one.
func within(prefix, host string) bool {
	p, err := netip.ParsePrefix(prefix)
	a, bad := netip.ParseAddr(host)
	return err == nil && bad == nil && p.Contains(a)
}

func (j *judged) compareVerdicts(c *rdmanet.Capture, r *health.Report) {
	want := c.Expected()
	got := map[rdmanet.Claim]bool{}
	for _, v := range r.Verdicts {
		for _, p := range append(v.Pairs, health.About{Subject: v.Subject})[:max(len(v.Pairs), 1)] {
			got[rdmanet.Claim{Verdict: v.Name, Subject: subjectOf(p.Subject)}] = true
		}
	}
	for claim := range got {
		j.of(claim.Verdict).claimed++
		if holds(claim, want.True) {
			j.of(claim.Verdict).right++
		} else {
			j.wrong = append(j.wrong, claim)
			j.note(c, about(c, claim), claim.Verdict+" wrong")
		}
	}
	for claim := range want.Must {
		j.of(claim.Verdict).due++
		if got[claim] {
			j.of(claim.Verdict).found++
		} else {
			j.missed = append(j.missed, claim)
			j.note(c, about(c, claim), claim.Verdict+" missed")
		}
	}
	j.healthy = len(want.True) == 0
}

// describe keeps what a person needs to understand a capture and its diagnosis.
func (j *judged) describe(c *rdmanet.Capture, r *health.Report) {
	lines := []string{fmt.Sprintf("seed %d: view %+v", c.Seed, c.View), "conclusion: " + r.Conclusion}
	for _, s := range c.Scenes {
		lines = append(lines, fmt.Sprintf("scene: %v %s", s.Kind, s.Detail))
	}
	for _, conn := range c.Network.Conns {
		lines = append(lines, conn.String())
	}
	for _, w := range j.wrong {
		lines = append(lines, "WRONG "+w.String())
	}
	for _, m := range j.missed {
		lines = append(lines, "MISSED "+m.String())
	}
	for _, v := range r.Verdicts {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", v.Name, v.Subject, v.Evidence))
	}
	for _, n := range r.Notes {
		lines = append(lines, fmt.Sprintf("note %s: %s: %s", n.Name, n.Subject, n.Text))
	}
	j.details = append(lines, j.details...)
}

func share(part, of uint64) float64 {
	if of == 0 {
		return 100
	}
	return 100 * float64(part) / float64(of)
}

// writeTable puts the tables into a page, in place of those that are there.
func writeTable(t *testing.T, table string) {
	if *drawnTable == "" {
		return
	}
	page, err := os.ReadFile(*drawnTable)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- written by TestHealthOfDrawn -->\n```\n", "```\n"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s: expected %q, and a block that ends", *drawnTable, begin)
	}
	if err := os.WriteFile(*drawnTable, []byte(before+begin+table+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reportDrawn prints the tables, and compares them with what is to be reached.
func reportDrawn(t *testing.T, all []*judged) {
	verdicts, kinds := map[string]*tally{}, map[string]*causes{}
	var sum causes
	healthy, alarms := uint64(0), uint64(0)
	var alarmed []string
	held := reached
	if len(all) < 10_000 {
		held = reachedByFew
	}
	var both pairs
	misjudged := map[string]map[string][]uint64{} // seeds, by what and where
	for _, j := range all {
		for name, o := range j.verdicts {
			if verdicts[name] == nil {
				verdicts[name] = &tally{}
			}
			verdicts[name].add(o)
		}
		for name, o := range j.causes {
			if kinds[name] == nil {
				kinds[name] = &causes{}
			}
			kinds[name].add(o)
			sum.add(o)
		}
		if j.healthy {
			healthy++
			if len(j.wrong) > 0 {
				alarms++
				alarmed = append(alarmed, fmt.Sprintf("%d %v", j.seed, j.wrong))
			}
		}
		both = pairs{both.all + j.pairs.all, both.right + j.pairs.right, both.wrong + j.pairs.wrong}
		for what, places := range j.misjudged {
			for _, where := range places {
				if misjudged[what] == nil {
					misjudged[what] = map[string][]uint64{}
				}
				misjudged[what][where] = append(misjudged[what][where], j.seed)
			}
		}
	}
	enough := len(all) >= fewestForBounds
	var b strings.Builder
	fmt.Fprintf(&b, "%d captures; of %d in which nothing is wrong %d have a verdict\n", len(all), healthy, alarms)
	fmt.Fprintf(&b, "of %d connections whose two directions are captured %d are paired, and %d wrongly\n", both.all, both.right, both.wrong)
	fmt.Fprintf(&b, "%-28s %8s %9s %8s %8s\n", "verdict", "claimed", "precision", "due", "recall")
	for _, name := range health.Names {
		o := verdicts[name]
		if o == nil || o.due == 0 {
			if len(all) >= 10_000 && !slices.Contains(notDrawn, name) {
				t.Errorf("%s: no drawn capture shows it; give package rdmanet a cause of it", name)
			}
			continue
		}
		precision, recall := share(uint64(o.right), uint64(o.claimed)), share(uint64(o.found), uint64(o.due))
		if precision < goalPrecision || recall < goalRecall {
			fmt.Fprintf(&b, "%-28s %8d %7.1f %% %8d %6.1f %%\n", name, o.claimed, precision, o.due, recall)
		}
		least, ok := held.verdicts[name]
		if !ok {
			least = rates{goalPrecision, goalRecall}
		}
		if enough && (precision < least.precision || recall < least.recall) {
			t.Errorf("%s: precision %.1f %%, recall %.1f %%, expected %.1f and %.1f; the seeds are in the log (-v)", name, precision, recall, least.precision, least.recall)
		}
	}
	fmt.Fprintf(&b, "%-28s %8s %9s %9s %9s %9s\n", "cause", "packets", "right", "unknown", "wrong", "missed")
	line := func(name string, o *causes) {
		fmt.Fprintf(&b, "%-28s %8d %7.2f %% %7.2f %% %7.2f %% %7.2f %%\n", name, o.all, share(o.right, o.all), share(o.unknown, o.all), share(o.wrong, o.all), share(o.missed, o.all))
	}
	for cause := health.Cause(0); cause < health.Unknown; cause++ {
		if o := kinds[cause.String()]; o != nil {
			line(cause.String(), o)
		}
	}
	line("all", &sum)
	writeTable(t, b.String())
	for _, a := range alarmed {
		fmt.Fprintf(&b, "nothing is wrong, but a verdict: seed %s\n", a)
	}
	for _, what := range slices.Sorted(maps.Keys(misjudged)) {
		places := slices.SortedFunc(maps.Keys(misjudged[what]), func(x, y string) int {
			return cmp.Or(len(misjudged[what][y])-len(misjudged[what][x]), cmp.Compare(x, y))
		})
		for _, where := range places[:min(len(places), drawnPlaces)] {
			seeds := misjudged[what][where]
			fmt.Fprintf(&b, "%s: %d times: %s; such as seed %d\n", what, len(seeds), where, seeds[0])
		}
	}
	t.Log(b.String())
	if !enough {
		return
	}
	if got := share(sum.right+sum.unknown, sum.all); got < held.causes {
		t.Errorf("causes: %.2f %% right or unknown, expected %.2f", got, held.causes)
	}
	if got := share(sum.wrong, sum.all); got > held.wrongCauses {
		t.Errorf("causes: %.2f %% wrong, expected at most %.2f", got, held.wrongCauses)
	}
	if got := share(alarms, healthy); got > held.falseAlarms {
		t.Errorf("%.2f %% of the healthy captures have a verdict, expected at most %.2f", got, held.falseAlarms)
	}
}
