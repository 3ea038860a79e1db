package hpcc_test

import (
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
	"github.com/cnpgate/cnpgate/sim"
	"github.com/cnpgate/cnpgate/sim/hpcc"
)

const (
	topology = "4 2 3\n2 3\n0 2 100Gbps 1000ns 0.000000\n1 3 40Mbps 0.001ms 0.25\n2 3 1.6bps 500us 1\n"
	flows    = "2\n0 1 3 100 9422 2.000011790\n\n1 0 3 100 1 0\n"
)

func TestReadTopology(t *testing.T) {
	text := strings.Replace(topology, "1.6bps", "1600Gbps", 1)
	got, err := hpcc.ReadTopology("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []sim.Link{
		{A: 0, B: 2, Rate: 100e9, Delay: 1000}, {A: 1, B: 3, Rate: 40e6, Delay: 1000, Loss: 0.25}, {A: 2, B: 3, Rate: 1600e9, Delay: 500_000, Loss: 1},
	}
	if len(got.Links) != len(want) || len(got.Warnings) != 0 {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got.Links[i] != want[i] {
			t.Errorf("link %d is %+v, want %+v", i, got.Links[i], want[i])
		}
	}
	if s := got.Switch; len(s) != 4 || s[0] || s[1] || !s[2] || !s[3] {
		t.Errorf("switches: %v", s)
	}
}

func TestReadFlows(t *testing.T) {
	got, err := hpcc.ReadFlows("f", []byte(flows))
	if err != nil || len(got) != 2 || got[0] != (hpcc.Flow{From: 0, To: 1, Bytes: 9422, Start: 2_000_011_790}) || got[1] != (hpcc.Flow{From: 1, To: 0, Bytes: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestComments: a # begins a comment; errors have the right line after it.
func TestComments(t *testing.T) {
	text := "# two data centres\n4 2 3#nodes, switches, links\n2 3\n0 2 100Gbps 1000ns 0 # host 0\n#1 3 1Gbps 1us 0\n1 3 40Mbps 1us 0\n2 3 1Gbps 500us 0\n# end"
	if got, err := hpcc.ReadTopology("t", []byte(text)); err != nil || len(got.Links) != 3 || len(got.Warnings) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := hpcc.ReadFlows("f", []byte("1 # one\n# from to\n0 1 3 100 9422 2")); err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := hpcc.ReadFlows("f", []byte("#\n1 #\n#\n0 x")); err == nil || !strings.HasPrefix(err.Error(), `f:4: "x"`) {
		t.Error(err)
	}
}

// TestWarnings: what the HPCC simulator would leave out, or couldn't use, is left out with a warning.
func TestWarnings(t *testing.T) {
	got, err := hpcc.ReadTopology("t", []byte("2 0 2\n0 1 1Gbps 1us 0\n1 1 1Gbps 1us 0\n7 7\n"))
	if err != nil || len(got.Links) != 1 || len(got.Warnings) != 2 || !strings.HasPrefix(got.Warnings[0], "t:3: ") || !strings.HasPrefix(got.Warnings[1], "t:4: ") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestMistakes: each has its line, and says what was expected.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "t:1: the file ends where the number of nodes should be; expected a whole number, 1 to 65536"},
		{"0", `t:1: "0" can't be the number of nodes`},
		{"4 5", `t:1: "5" can't be the number of switches; expected a whole number, 0 to 4`},
		{"4 1 0\n4", `t:2: "4" can't be a switch's node number; expected a whole number, 0 to 3`},
		{"4 0 1\n0 4", `t:2: "4" can't be a link's second node`},
		{"4 0 1\n0 1\n100", `t:3: "100" can't be a link's rate; expected a rate such as 100Gbps`},
		{"4 0 1\n0 1 -1Gbps", `t:2: "-1Gbps" can't be a link's rate`},
		{"4 0 1\n0 1 1Gbps 1", `t:2: "1" can't be a link's delay; expected a time such as 1000ns`},
		{"4 0 1\n0 1 1Gbps -1us", `can't be a link's delay`},
		{"4 0 1\n0 1 1Gbps 1us 2", `t:2: "2" can't be a link's error rate; expected a number, 0 to 1`},
		{"4 0 1\n0 1 1Gbps 1us NaN", `can't be a link's error rate`},
		{"4 0 2\n0 1 1Gbps 1us 0\n", `t:2: the file ends where a link's first node should be`},
		{"4 0 1\n" + strings.Repeat("9", 100), `"` + strings.Repeat("9", 40) + `..."`},
	} {
		if _, err := hpcc.ReadTopology("t", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: the error is %v, want %q", c.text, err, c.says)
		}
	}
	for _, c := range []struct{ text, says string }{
		{"1\n0 1 3 100 0 1", `f:2: "0" can't be a flow's bytes`},
		{"1\n0 1 3 70000 1 1", `can't be a flow's port`},
		{"1\n0 1 3 100 1 -1", `can't be a flow's start in seconds`},
		{"5000000", `can't be the number of flows; expected a whole number, 0 to 4194304`},
	} {
		if _, err := hpcc.ReadFlows("f", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: the error is %v, want %q", c.text, err, c.says)
		}
	}
}

// FuzzRead: whatever the bytes are, the readers end with what is within its bounds, or with an error.
func FuzzRead(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(readAnything)
}

var seeds = [][]byte{[]byte(topology), []byte(strings.Replace(topology, "1.6bps", "1600Gbps", 1)), []byte(flows)}

// TestReadMutants runs the body of FuzzRead on mutants.
func TestReadMutants(t *testing.T) {
	const executions = 20_000
	m := mutate.Run(t, executions, seeds)
	for range executions {
		_, b, _ := m.Next()
		readAnything(t, b)
	}
}

func readAnything(t *testing.T, file []byte) {
	if top, err := hpcc.ReadTopology("t", file); err == nil {
		for _, l := range top.Links {
			if max(l.A, l.B) >= len(top.Switch) || min(l.A, l.B) < 0 || l.A == l.B || l.Rate < 100_000 || l.Delay < 0 || !(l.Loss >= 0 && l.Loss <= 1) {
				t.Fatalf("link %+v of %d nodes", l, len(top.Switch))
			}
		}
	}
	if list, err := hpcc.ReadFlows("f", file); err == nil {
		for _, f := range list {
			if min(f.From, f.To) < 0 || f.Bytes < 1 || f.Start < 0 {
				t.Fatalf("flow %+v", f)
			}
		}
	}
}
