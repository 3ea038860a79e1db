package main

import (
	"strings"
	"testing"
)

// TestFigures: the pages and pictures have the figures of their sources. `scripts/figures` writes them.
func TestFigures(t *testing.T) {
	if err := run("../..", false); err != nil {
		t.Error(err)
	}
}

// TestPage: figures are replaced where they stand, across line breaks, and nothing else. Text that isn't there, or twice, is an error.
func TestPage(t *testing.T) {
	const text = "a 1.5 ms,\nb 2\n\n```\nhead 1\nrow 2\n```\nc 3 c 3\n"
	for _, c := range []struct {
		page page
		want string // or the error
	}{
		{page{sentences: []sentence{{"a #, b #", []string{"7 µs", "8"}}}}, "a 7 µs,\nb 8\n\n```\nhead 1\nrow 2\n```\nc 3 c 3\n"},
		{page{blocks: []block{{"row", "new\nlines\n"}}}, "a 1.5 ms,\nb 2\n\n```\nnew\nlines\n```\nc 3 c 3\n"},
		{page{whole: "drawn"}, "drawn"},
		{page{sentences: []sentence{{"z #", []string{"7"}}}}, `expected "z #" once, with figures in place of each #; it is there 0 times`},
		{page{sentences: []sentence{{"c #", []string{"7"}}}}, "it is there 2 times"},
		{page{sentences: []sentence{{"a #, b #", []string{"7"}}}}, "has 2 places for figures, expected 1"},
		{page{blocks: []block{{"c", ""}}}, "is in no fenced block"},
		{page{blocks: []block{{"x", ""}}}, `no line begins with "x"`},
	} {
		got, err := c.page.with(text)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.page, got, err, c.want)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, c := range [][2]string{
		{inTime(30_012), "30.0 µs"}, {inTime(4_013), "4.01 µs"}, {inTime(10_384_000), "10.4 ms"}, {inTime(142_000_000), "142 ms"}, {inTime(0), "0.00 µs"},
		{grouped(159739), "159,739"}, {grouped(1_002_003), "1,002,003"}, {grouped(0), "0"}, {megabytes(62_500_000), "62.5"}, {gigabits(84.66e9), "84.7"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

// TestSoaks: the runs of scripts/soak and scripts/fuzz are added up; a line that isn't one is an error, and so is a packet that was lost.
func TestSoaks(t *testing.T) {
	const hour = "HOURS 1 abc soak: 1.00 h, 4000 frames, accounted for 60 times, 4 takeovers, 9 notifications, RSS 210.5MB +0.25±0.50/h, descriptors 38.0 +0.00±0.00/h\n"
	const half, rings = "HOURS 0.5 abc soak: 0.50 h, 1000 frames, accounted for 30 times, 2 takeovers, 9 notifications, RSS 210.5MB +9.00±0.50/h\n", "PACKETS 1000 abc soak: 1000 packets over rings, 0 lost, 5 a second\n"
	var s soaked
	err := s.readSoaks(hour + half + rings + rings)
	if want := (soaked{hours: 1.5, frames: 5000, takeovers: 6, packets: 2000}); err != nil || s != want {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
	for _, wrong := range []string{"HOURS 1 abc\n", "PACKETS 1000 abc soak: 1000 packets over rings, 1 lost, 5 a second\n", "x\n"} {
		if err := s.readSoaks(hour + wrong); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
	if err := s.readFuzz("a FuzzB 7\nc FuzzD 8\n"); err != nil || s.targets != 2 || s.executions != 15 {
		t.Errorf("%d targets, %d executions, %v; want 2, 15", s.targets, s.executions, err)
	}
	if err := s.readFuzz("a FuzzB many\n"); err == nil {
		t.Error("a number of executions that isn't one: no error")
	}
}
