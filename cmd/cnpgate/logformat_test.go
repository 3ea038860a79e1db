package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestJournalText: each line has its priority, no time, and is one line.
func TestJournalText(t *testing.T) {
	var text bytes.Buffer
	log := loggerTo(journalText(&text)).Level(zerolog.DebugLevel)
	for _, c := range []struct {
		do   func()
		want string
	}{
		{func() { log.Debug().Msg("Nothing.") }, "<7>Nothing.\n"},
		{func() { log.Info().Str("port", "wan").Int("n", 3).Msg("The link is up.") }, "<6>The link is up. n=3 port=wan\n"},
		{func() { log.Warn().Strs("names", []string{"a", "b"}).Msg("Two\nlines.") }, `<4>Two; lines. names=["a","b"]` + "\n"},
		{func() { log.Error().Err(errors.New("no\ncable")).Msg("It failed.") }, `<3>It failed. error="no\ncable"` + "\n"},
		{func() { log.WithLevel(zerolog.FatalLevel).Bytes("stack", []byte("a\n\tb")).Msg("The end.") }, `<2>The end. stack="a\n\tb"` + "\n"},
		{func() { log.Info().Any("device_properties", []int{1}).Msg("The device is open: 1.") }, "<6>The device is open: 1.\n"},
	} {
		text.Reset()
		if c.do(); text.String() != c.want {
			t.Errorf("%q, want %q", text.String(), c.want)
		}
	}
}

// TestRepeats: a message that comes again and again has as many lines as are of use, and none is left out without being counted.
func TestRepeats(t *testing.T) {
	var text bytes.Buffer
	now := time.Unix(0, 0)
	log := loggerTo(&text).Hook(&repeats{now: func() time.Time { return now }})
	lines := func() int { return strings.Count(text.String(), "\n") }
	const hours = 24
	for range hours * 3600 {
		log.Warn().Msg("A worker has stopped stepping.")
		now = now.Add(time.Second)
	}
	if most := repeatsAtOnce + hours*12; lines() > most || lines() < most-1 {
		t.Errorf("%d lines in a day, want %d", lines(), most)
	}
	if !strings.Contains(text.String(), `"left_out":299,`) {
		t.Errorf("no line has the number of those left out:\n%s", text.String()[max(0, text.Len()-400):])
	}
	text.Reset()
	log.Warn().Msg("Another message.")
	for range 3 {
		log.WithLevel(zerolog.FatalLevel).Msg("A worker has stopped stepping.")
	}
	if lines() != 4 {
		t.Errorf("another message, or that of the end, is left out:\n%s", text.String())
	}
	for i := range 3 * repeatsMessages {
		log.Info().Msg(strings.Repeat("x", i))
	}
	if lines() != 4+3*repeatsMessages {
		t.Errorf("%d lines of as many messages", lines())
	}
}
