package replay_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/rdmanet"
)

var (
	changedDump  = flag.String("changed", "", "write the captures whose answers TestUnchanged finds changed to this directory")
	changedOneIn = flag.Uint("onein", 200*effort.Short+1000*effort.Race+effort.Long, "let TestUnchanged try one pair of a capture and a change in so many, besides all changes of one capture")
)

// mostChanged is the share of answers that may be other ones, percent: what is reached.
const mostChanged = 2.0

// relation is what a change may do to the answer.
type relation struct {
	less bool     // less certain: a part of the verdicts, causes and places, and how often may differ
	some bool     // of packets that the capture no longer has, it isn't known where they are missing
	may  []string // verdicts and notes that may be added
	plus string   // the name of the capture whose answer is added
}

type change struct {
	name string
	file func(all []frame) []byte // nil: it doesn't apply
	relation
}

// said is what an answer says.
type said struct {
	verdicts, notes []string
	causes          map[string]uint64
	lost            [2]uint64 // before and behind
	unpaired        int
	conclusion      string
}

func saidOf(t *testing.T, name string, b []byte) said {
	t.Helper()
	c := opened(t, b)
	r, err := diagnosed(c, replay.HealthOptions{Connections: 512})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s := said{causes: map[string]uint64{}, lost: [2]uint64{r.Summary.LostUpstream, r.Summary.LostDownstream}, unpaired: r.Summary.NotPaired, conclusion: r.Conclusion}
	for _, v := range r.Verdicts {
		s.verdicts = append(s.verdicts, v.Name)
	}
	for _, n := range r.Notes {
		s.notes = append(s.notes, n.Name)
	}
	for cause, a := range r.Summary.Causes {
		s.causes[cause] = a.Packets
	}
	s.verdicts, s.notes = sortedSet(s.verdicts), sortedSet(s.notes)
	return s
}

func sortedSet(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

func opened(t *testing.T, b []byte) *replay.Capture {
	t.Helper()
	c, err := replay.OpenFrom(replay.Source{Name: "changed", From: bytes.NewReader(b)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// broken says how an answer isn't what a change may make of another one; "": it is.
func (r *relation) broken(was, is *said) string {
	var why []string
	may := r.may
	if r.less && slices.Contains(was.verdicts, health.WrongICRC) { // whose packets seem to be lost behind, if the ICRCs can't be verified
		may = append(slices.Clone(may), health.LossDownstream)
	}
	no := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	added := func(was, is []string) (out []string) {
		for _, name := range is {
			if !slices.Contains(was, name) && !slices.Contains(may, name) {
				out = append(out, name)
			}
		}
		return out
	}
	if more := added(was.verdicts, is.verdicts); more != nil {
		no("more verdicts: %v", more)
	}
	if more := added(was.notes, is.notes); more != nil && !r.less {
		no("more notes: %v", more)
	}
	for cause, n := range is.causes {
		if before := was.causes[cause]; n != before && (!r.less || before == 0 && cause != "unknown") {
			no("%d by %s, not %d", n, cause, before)
		}
	}
	for i, where := range []string{"before", "behind"} {
		if r.some && i == 0 {
			continue
		}
		if n, before := is.lost[i], was.lost[i]; n != before && (!r.less || before == 0 && !slices.Contains(may, []string{health.LossUpstream, health.LossDownstream}[i])) {
			no("%d lost %s, not %d", n, where, before)
		}
	}
	if r.less {
		if len(was.verdicts) > 0 && len(is.verdicts) == 0 && is.conclusion == "Nothing is wrong." && len(was.causes) > 0 && len(is.causes) > 0 {
			no("nothing is wrong")
		}
		return strings.Join(why, "; ")
	}
	if fewer := added(is.verdicts, was.verdicts); fewer != nil {
		no("fewer verdicts: %v", fewer)
	}
	if fewer := added(is.notes, was.notes); fewer != nil {
		no("fewer notes: %v", fewer)
	}
	for cause, n := range was.causes {
		if is.causes[cause] == 0 {
			no("0 by %s, not %d", cause, n)
		}
	}
	if is.unpaired > was.unpaired {
		no("%d unpaired, not %d", is.unpaired, was.unpaired)
	}
	return strings.Join(why, "; ")
}

// plus is an answer to two captures.
func (s said) plus(o *said) said {
	s.verdicts, s.notes = sortedSet(slices.Concat(s.verdicts, o.verdicts)), sortedSet(slices.Concat(s.notes, o.notes))
	s.causes = maps.Clone(s.causes)
	for cause, n := range o.causes {
		s.causes[cause] += n
	}
	s.lost = [2]uint64{s.lost[0] + o.lost[0], s.lost[1] + o.lost[1]}
	s.unpaired += o.unpaired
	return s
}

// bases are the captures that are changed, by name.
func bases(t *testing.T) map[string]func() []frame {
	t.Helper()
	all := map[string]func() []frame{}
	for _, pattern := range []string{"testdata/cases/*", "testdata/unread/*", "../../testdata/captures/*.pcap"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			name, _, _ := strings.Cut(filepath.Base(path), ".")
			all[name] = sync.OnceValue(func() []frame { return framesOf(t, readFile(t, path)) })
		}
	}
	for seed := range uint64(4 + 60*effort.Long) {
		all[fmt.Sprintf("drawn%02d", seed)] = sync.OnceValue(func() []frame {
			var b bytes.Buffer
			if err := rdmanet.Draw(7_000_000 + seed).Write(&b); err != nil {
				t.Fatal(err)
			}
			return framesOf(t, b.Bytes())
		})
	}
	return all
}

const sick = "testdata/cases/cut_tail.pcap.zst"

func changes(t *testing.T) (all []change) {
	add := func(name string, file func([]frame) []byte, r relation) { all = append(all, change{name, file, r}) }
	frames := func(name string, f func([]frame) []frame, r relation) { add(name, asIs(f), r) }
	packets := func(name string, f func(*packet.Parsed, []byte), r relation) { frames(name, rewrite(f), r) }
	var same relation
	less := relation{less: true}
	for name, of := range wraps {
		frames("in "+name, each(of), same)
	}
	for name, of := range links {
		add("as "+name, of, same)
	}
	frames("in IPv6", otherIP(6, nothing), less)
	frames("in IPv4", otherIP(4, nothing), less)
	frames("in IPv6 with hop-by-hop options", otherIP(6, option(0)), less)
	frames("in IPv6 with destination options", otherIP(6, option(60)), less)
	frames("in IPv4 with options", otherIP(4, routerAlert), less)
	packets("identification 0", identities(func(uint16) uint16 { return 0 }, 0x40), less)
	packets("random identifications", identities(func(n uint16) uint16 { return n*40503 ^ 0x5a5a }, 0), less)
	packets("DF", identities(func(n uint16) uint16 { return n }, 0x40), less)

	little, big := binary.LittleEndian, binary.BigEndian
	add("as big-endian pcap", func(all []frame) []byte { return pcapOf(all, big, true, 1, 1<<18) }, same)
	add("as pcap of snapshot length 0", func(all []frame) []byte { return pcapOf(all, little, true, 1, 0) }, same)
	add("as pcap of microseconds", func(all []frame) []byte { return pcapOf(all, little, false, 1, 65535) }, less)
	add("as pcapng", ng{order: little, unit: 9}.of, same)
	add("as big-endian pcapng with comments", ng{order: big, unit: 9, options: true}.of, same)
	add("as pcapng of 2^-30 s", ng{order: little, unit: 0x80 | 30}.of, less)
	add("as pcapng of 10^-6 s", ng{order: little, unit: 6}.of, less)
	add("as pcapng of 10^-3 s", ng{order: little, unit: 3}.of, less)
	add("as pcapng with an offset", ng{order: big, unit: 9, offset: -86400}.of, same)
	add("as pcapng of two sections", ng{order: little, unit: 9, again: true}.of, same)
	add("as pcapng of one interface a direction", ng{order: little, unit: 9, on: byDirection}.of, relation{may: []string{health.NoteClocks}})
	add("as pcapng without times", func(all []frame) []byte {
		if slices.ContainsFunc(all, func(f frame) bool { return len(f.octets) < f.length }) {
			return nil // such a block doesn't say how much of a frame it has
		}
		return ng{order: little, unit: 9, simple: true}.of(all)
	}, less)
	add("as gzip", func(all []frame) []byte { return gzipped(plain(all)) }, same)
	add("as zstd", func(all []frame) []byte { return zstandard(plain(all)) }, same)
	add("as two files in one", func(all []frame) []byte { return slices.Concat(plain(all[:len(all)/3]), plain(all[len(all)/3:])) }, same)
	add("with a cut end", func(all []frame) []byte { return plain(all)[:len(plain(all))-7] }, less)
	frames("out of order by 1 ms", func(all []frame) []frame {
		out := slices.Clone(all)
		slices.SortStableFunc(out, func(a, b frame) int { return int(a.at/1e6 - b.at/1e6) })
		for from := 0; from < len(out); {
			to := from
			for to < len(out) && out[to].at/1e6 == out[from].at/1e6 {
				to++
			}
			slices.SortStableFunc(out[from:to], func(a, b frame) int { return int(a.at*2654435761%1000 - b.at*2654435761%1000) })
			from = to
		}
		return out
	}, less)
	frames("with a FCS", each(with(func(int) int { return 4 })), same)
	frames("padded to 64 octets", each(with(func(n int) int { return 64 - n })), same)
	frames("padded to 80 octets", each(with(func(n int) int { return 80 - n })), same)
	for _, n := range []int{128, 96, 64} {
		frames(fmt.Sprintf("cut to %d octets", n), withoutSetups(each(cut(n))), relation{less: true, may: []string{health.Unexplained}})
	}

	frames("other PSNs", shiftPSNs(func([]frame) [2]uint32 { return [2]uint32{0x123456, 0x876543} }), same)
	frames("PSNs that wrap", shiftPSNs(overWrap), same)
	packets("other MSNs", shiftMSNs, less)
	packets("other QPs", otherQPs, less)
	packets("other addresses", addresses(turned), same)
	packets("other prefixes", addresses(func(a []byte) { a[1] ^= 0x55 }), same)
	frames("other MACs", each(otherMACs), same)
	packets("other ports", sourcePort(func(n uint16) uint16 { return n ^ 0x1234 }), less)
	packets("equal ports", sourcePort(func(uint16) uint16 { return 49152 }), less)
	packets("fewer hops", hops(255, 253), same)
	packets("another class", class, same)

	frames("years later", at(func(since, first int64) int64 { return first + since + 20*365*86400e9 }), same)
	frames("in 1970", at(func(since, _ int64) int64 { return since }), same)
	frames("across a second", at(func(since, _ int64) int64 { return since + 999_999_999 }), same)

	frames("beside a healthy connection", beside(t, "../../testdata/captures/rc_write_v4.pcap", each(func(_ int, f frame) frame { return f })), same)
	frames("beside a sick connection", beside(t, sick, rewrite(addresses(func(a []byte) { a[0] = 172 }))), relation{plus: sick})
	frames("beside TCP", func(all []frame) []frame {
		var tcp []frame
		for i := range 10_000 {
			b := inIPv4(6, make([]byte, 40+i%7))
			tcp = append(tcp, frame{all[0].at + int64(i)*(all[len(all)-1].at-all[0].at)/10_000, b, len(b)})
		}
		return merged(all, tcp)
	}, same)
	frames("twice", func(all []frame) []frame {
		end := all[len(all)-1].at + 60e9
		return append(slices.Clone(all), at(func(since, _ int64) int64 { return end + since })(all)...)
	}, less)
	for _, lag := range []int64{2e3, 300e3} {
		add(fmt.Sprintf("at two taps, %d us apart", lag/1e3), func(all []frame) []byte {
			var second []frame
			taps := map[*byte]bool{}
			for _, f := range all {
				f.octets, f.at = slices.Clone(f.octets), f.at+lag
				taps[&f.octets[0]] = true
				second = append(second, f)
			}
			return ng{order: little, unit: 9, on: func(_ int, f *frame) int {
				if taps[&f.octets[0]] {
					return 1
				}
				return 0
			}}.of(merged(all, second))
		}, relation{may: []string{health.NoteCopies, health.NoteClocks}})
	}
	frames("the first half", withoutSetups(func(all []frame) []frame { return all[:(len(all)+1)/2] }), relation{less: true, may: []string{health.Unexplained}})
	frames("the second half", withoutSetups(func(all []frame) []frame { return all[len(all)/2:] }), relation{less: true, may: []string{health.Unexplained, health.Incomplete}})
	for _, n := range []int{2, 7, 50} {
		frames(fmt.Sprintf("one frame in %d missing", n), withoutSetups(func(all []frame) (out []frame) {
			for i, f := range all {
				if i%n != n-1 {
					out = append(out, f)
				}
			}
			return out
		}), relation{less: true, some: true, may: []string{health.Unexplained, health.Incomplete, health.Asymmetric}})
	}
	slices.SortFunc(all, func(a, b change) int { return strings.Compare(a.name, b.name) })
	return all
}

// TestUnchanged: what doesn't change what happened doesn't change the answer. To try all, or some, and to keep what is answered otherwise:
//
//	go test ./control/replay -run TestUnchanged -v -onein 1 -changed DIR
//	go test ./control/replay -run TestUnchanged/in_VXLAN/cut_tail -v -onein 1
func TestUnchanged(t *testing.T) {
	all := bases(t)
	var pairs, void int
	var broken []string
	answers := map[string]*said{}
	answer := func(name string, b func() []byte) *said {
		if answers[name] == nil {
			s := saidOf(t, name, b())
			answers[name] = &s
		}
		return answers[name]
	}
	for _, c := range changes(t) {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(all)) {
				h := fnv.New32a()
				fmt.Fprint(h, c.name, name)
				if h.Sum32()%uint32(*changedOneIn) != 0 && name != "cut_tail" {
					continue
				}
				t.Run(name, func(t *testing.T) {
					frames := all[name]()
					if len(frames) == 0 {
						return
					}
					b := c.file(frames)
					if b == nil {
						void++
						return
					}
					was := *answer(name, func() []byte { return plain(frames) })
					if c.plus != "" {
						was = was.plus(answer(c.plus, func() []byte { return readFile(t, c.plus) }))
					}
					is := saidOf(t, name, b)
					pairs++
					if why := c.broken(&was, &is); why != "" {
						broken = append(broken, fmt.Sprintf("%s, %s: %s", name, c.name, why))
						keepChanged(t, name+".pcap", plain(frames))
						keepChanged(t, name+" "+c.name, b)
					}
				})
			}
		})
	}
	t.Logf("%d pairs of a capture and a change; %d answers are other ones; %d changes don't apply\n%s", pairs, len(broken), void, strings.Join(broken, "\n"))
	if got := share(uint64(len(broken)), uint64(pairs)); pairs == 0 || got > mostChanged {
		t.Errorf("%.1f %% of the answers are other ones, expected at most %.1f", got, mostChanged)
	}
}

// TestCEInTunnels: a packet is marked CE if its own header says so, whatever that of a tunnel says.
func TestCEInTunnels(t *testing.T) {
	all := framesOf(t, readFile(t, "testdata/cases/ce_no_cnp.pcap.zst"))
	for _, name := range []string{"VXLAN", "VXLAN in IPv6", "GRE", "IP in IPv6", "SRv6", "VXLAN in VXLAN"} {
		if s := saidOf(t, name, plain(each(wraps[name])(all))); !slices.Equal(s.verdicts, []string{health.CENoCNP}) {
			t.Errorf("in %s: %v, want %s", name, s.verdicts, health.CENoCNP)
		}
	}
}

func keepChanged(t *testing.T, name string, b []byte) {
	if *changedDump == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*changedDump, strings.ReplaceAll(name, " ", "_")), b, 0o644); err != nil {
		t.Error(err)
	}
}
