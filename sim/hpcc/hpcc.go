// Package hpcc reads the topology and flow files of the HPCC simulator (github.com/alibaba-edu/High-Precision-Congestion-Control), which many
// papers about RDMA networks use. It is pure: the caller has the files' bytes.
//
// A topology is numbers and words, divided by white space: how many nodes, switches and links there are; the switches' node numbers; and for
// each link its two nodes, rate, delay and error rate, such as "0 32 100Gbps 1000ns 0.000000". A list of flows is their number, and for each its
// source, destination, priority, port, bytes and start in seconds. What follows a # in a line is a comment.
package hpcc

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/internal/units"
	"github.com/cnpgate/cnpgate/sim"
)

// Topology is what a topology file holds.
type Topology struct {
	Switch []bool // by node; the others are hosts
	Links  []sim.Link
	// Warnings describe the parts of the file that were left out.
	Warnings []string
}

const (
	maxNodes = 1 << 16
	maxLinks = 1 << 18
	maxFlows = 1 << 22
)

// ReadTopology reads a topology file. name is the file's name in errors.
func ReadTopology(name string, file []byte) (*Topology, error) {
	w := newWords(name, file)
	nodes := w.integer("the number of nodes", 1, maxNodes)
	switches := w.integer("the number of switches", 0, nodes)
	links := w.integer("the number of links", 0, maxLinks)
	if w.err != nil {
		return nil, w.err
	}
	t := &Topology{Switch: make([]bool, nodes)}
	for range switches {
		n := w.integer("a switch's node number", 0, nodes-1)
		if w.err != nil {
			return nil, w.err
		}
		t.Switch[n] = true
	}
	for range links {
		l := sim.Link{
			A: w.integer("a link's first node", 0, nodes-1), B: w.integer("a link's second node", 0, nodes-1),
			Rate: w.rate(), Delay: w.delay(), Loss: w.number("a link's error rate", 0, 1),
		}
		if w.err != nil {
			return nil, w.err
		}
		if l.A == l.B {
			t.Warnings = append(t.Warnings, fmt.Sprintf("%s: the link of node %d to itself is left out", w.where(), l.A))
			continue
		}
		t.Links = append(t.Links, l)
	}
	if word := w.next(); word != "" {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s: from %q on, the file is left out: the first line counts %d links", w.where(), word, links))
	}
	return t, nil
}

// Flow is one flow of a file.
type Flow struct {
	From, To int // nodes
	Bytes    int64
	Start    int64 // ns
}

// ReadFlows reads a list of flows. name is the file's name in errors. The simulator doesn't need priorities and ports. Like the HPCC
// simulator, ReadFlows ignores flows beyond the number in the first line.
func ReadFlows(name string, file []byte) ([]Flow, error) {
	const longest = 1e6 // seconds
	w := newWords(name, file)
	n := w.integer("the number of flows", 0, maxFlows)
	var flows []Flow
	for range n {
		f := Flow{From: w.integer("a flow's source", 0, maxNodes), To: w.integer("a flow's destination", 0, maxNodes)}
		w.integer("a flow's priority", 0, math.MaxUint16)
		w.integer("a flow's port", 0, math.MaxUint16)
		f.Bytes = int64(w.integer("a flow's bytes", 1, 1<<50))
		f.Start = int64(math.Round(w.number("a flow's start in seconds", 0, longest) * 1e9))
		if w.err != nil {
			return nil, w.err
		}
		flows = append(flows, f)
	}
	return flows, w.err
}

// words are the words of a file with their line numbers.
type words struct {
	name   string
	rest   []byte
	lines  int      // read so far
	inLine []string // words of the last of them that are left
	line   int      // of the last word read
	err    error
}

func newWords(name string, file []byte) *words { return &words{name: name, rest: file} }

func (w *words) where() string { return w.name + ":" + strconv.Itoa(max(w.line, 1)) }

// fail records the first mistake.
func (w *words) fail(word, what, expected string) {
	if w.err != nil {
		return
	}
	if word == "" {
		w.err = fmt.Errorf("%s: the file ends where %s should be; expected %s", w.where(), what, expected)
		return
	}
	const most = 40
	if len(word) > most {
		word = word[:most] + "..."
	}
	w.err = fmt.Errorf("%s: %q can't be %s; expected %s", w.where(), word, what, expected)
}

// next returns the next word, "" at the end of the file.
func (w *words) next() string {
	for len(w.inLine) == 0 {
		if len(w.rest) == 0 {
			return ""
		}
		var line []byte
		line, w.rest, _ = bytes.Cut(w.rest, []byte("\n"))
		text, _, _ := strings.Cut(string(line), "#")
		w.inLine = strings.Fields(text)
		w.lines++
	}
	word := w.inLine[0]
	w.inLine, w.line = w.inLine[1:], w.lines
	return word
}

func (w *words) integer(what string, least, most int) int {
	word := w.next()
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		w.fail(word, what, fmt.Sprintf("a whole number, %d to %d", least, most))
		return least
	}
	return n
}

func (w *words) number(what string, least, most float64) float64 {
	word := w.next()
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || !(v >= least && v <= most) {
		w.fail(word, what, fmt.Sprintf("a number, %v to %v", least, most))
		return least
	}
	return v
}

// rate reads a rate such as 100Gbps, in bit/s. ns-3 also writes Kbps.
func (w *words) rate() uint64 {
	word := w.next()
	v, err := units.Parse(strings.Replace(word, "Kbps", "kbps", 1), units.Rates)
	if err != nil || v < 100_000 || v > 100_000_000_000_000 {
		w.fail(word, "a link's rate", "a rate such as 100Gbps or 40Mbps")
		return 0
	}
	return v
}

// delay reads a delay such as 1000ns or 0.001ms, in ns.
func (w *words) delay() int64 {
	word := w.next()
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 || d > time.Minute {
		w.fail(word, "a link's delay", "a time such as 1000ns or 0.5ms, at most a minute")
		return 0
	}
	return int64(d)
}
