package main

import (
	"fmt"

	"github.com/cnpgate/cnpgate/sim/scenario"
)

// pages are all files with figures. The first slow-down of both is what docs/simulator.md defines.
func (s *sources) pages() ([]page, error) {
	var failed error
	cell := func(row string, column int) string {
		text, err := s.cell(row, column)
		if err != nil {
			failed = err
		}
		return text
	}
	demo, err := lines(demoFile, s.demo, "HOSTS AND WAN QUEUE", "                  | ", "      ms  phase", "    1200  during", "VERDICT", "  PASS  received = ",
		"  PASS  helped: at most", "  PASS  helped: the peak")
	if err != nil {
		return nil, err
	}
	try, err := lines(tryFile, s.try, "  notifications  accepted: ", "1: queue wan/default", "  packets marked; ", "  SOURCE ", "  198.18.0.2 ")
	if err != nil {
		return nil, err
	}
	planning := page{file: "docs/planning.md", sentences: []sentence{{"Latency through the gateway without other traffic is # (p50) and # (p99.9)",
		[]string{cell("latency_p50_us", 2), cell("latency_p999_us", 2)}}}}
	for i, rate := range []string{"100G", "200G", "400G"} {
		planning.sentences = append(planning.sentences, sentence{"| " + rate + " | # | # |", []string{s.cores["1 KB payload"][i], s.cores["4 KB payload"][i]}})
	}
	possible, early, late := gigabits(s.cnp.Possible), inTime(s.cnp.SlowDown), inTime(s.ecn.SlowDown)
	pages := []page{
		{file: "README.md", sentences: []sentence{
			{"slows down after # with cnpgate, after # with the receiver's CNP", []string{early, late}},
			{"| Goodput, of # Gbps possible |", []string{possible}},
			{"| ECN and the receiver's CNP | # | # MB, full | # | # | # Gbps |", row(s.ecn)},
			{"| standard CNP from cnpgate | # | # MB | # | # | # Gbps |", row(s.cnp)},
			{"on ports that cost what a NIC's do: # Mpps of mixed traffic, # of `testpmd csum`", []string{number(cell("nic_mixed_cold", 2)), number(cell("nic_mixed_cold", 3))}},
		}, blocks: []block{{"HOSTS AND WAN QUEUE", demo}, {"1: queue wan/default", try}}},
		{file: "docs/overview.svg", sentences: []sentence{{">after #</text>", []string{early}}, {"then the receiver's CNP, after #</text>", []string{late}}}},
		planning,
		{file: "docs/operations.md", sentences: []sentence{{"failing links and takeovers: # h so far, # frames, all accounted for, # takeovers; and # packets over rings, none lost. `scripts/fuzz` ran # targets # times.",
			s.soaked.figures()}}},
		{file: "docs/effect.md", sentences: []sentence{{"**HPCC** reaches # Gbps in `incast-10ms`", s.others[:1]},
			{"only pauses: # Gbps in `incast-10ms`, # with a loop of 200 us", s.others[1:]}}},
		{file: "docs/incast.svg", whole: drawDepths(s.ecn, s.cnp)},
	}
	return pages, failed
}

// row is an outcome's figures in the README's table.
func row(o *scenario.Outcome) []string {
	return []string{inTime(o.SlowDown), megabytes(o.Gateway.Peak), grouped(o.Dropped + o.Lost), inTime(o.All.MeanFCT), gigabits(o.All.Goodput)}
}

// number is a figure without its unit.
func number(text string) (n string) {
	_, _ = fmt.Sscan(text, &n)
	return n
}
