package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/rs/zerolog"
)

func logger() zerolog.Logger { return loggerTo(logOutput("")) }

// logOutput is where the log goes: standard error, in a format of management.log_format. Without one, it is text at a terminal and in the journal, else JSON.
func logOutput(format string) io.Writer {
	atTerminal, atJournal := isTerminal(os.Stderr), inJournal()
	switch {
	case format == "json", format == "" && !atTerminal && !atJournal:
		return os.Stderr
	case atJournal:
		return journalText(os.Stderr)
	}
	return zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "15:04:05.000", NoColor: !isScreen(os.Stderr), FieldsExclude: inMessage}
}

// inMessage are the fields whose values the message has as text, too.
var inMessage = []string{"device_properties"}

// inJournal reports whether standard error is the journal's.
func inJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}

// priorities are those of syslog(3), which the journal reads at the beginning of a line (sd-daemon(3)).
var priorities = map[string]int{"debug": 7, "info": 6, "warn": 4, "error": 3, "fatal": 2, "panic": 2}

// journalText writes lines with their priorities: the journal adds the time.
func journalText(to io.Writer) io.Writer {
	return zerolog.ConsoleWriter{
		Out: to, NoColor: true, PartsOrder: []string{zerolog.MessageFieldName}, FieldsExclude: inMessage,
		FormatPrepare: func(line map[string]any) error {
			level, _ := line[zerolog.LevelFieldName].(string)
			priority, known := priorities[level]
			if !known {
				priority = priorities["info"]
			}
			line[zerolog.MessageFieldName] = fmt.Sprintf("<%d>%s", priority, strings.ReplaceAll(fmt.Sprint(line[zerolog.MessageFieldName]), "\n", "; "))
			return nil
		},
	}
}

func loggerTo(w io.Writer) zerolog.Logger {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00" // RFC 3339
	return zerolog.New(w).With().Timestamp().Logger()
}

const (
	repeatsAtOnce   = 32              // lines with one message
	repeatsEvery    = 5 * time.Minute // after these
	repeatsMessages = 1024            // whose lines are counted
)

// repeats leaves out lines whose message has come too often: repeatsAtOnce at once, and one each repeatsEvery, which has the number of those left out. Any goroutine may
// use it.
type repeats struct {
	now   func() time.Time
	mutex sync.Mutex
	of    map[string]*repeated // by message
}

type repeated struct {
	left float64 // lines that may come at once
	at   time.Time
	out  int // lines left out since the last one
}

// Run is of zerolog.Hook.
func (r *repeats) Run(e *zerolog.Event, level zerolog.Level, message string) {
	if level >= zerolog.FatalLevel && level != zerolog.NoLevel {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	m := r.of[message]
	if m == nil {
		if r.of == nil || len(r.of) >= repeatsMessages {
			r.of = map[string]*repeated{}
		}
		m = &repeated{repeatsAtOnce, now, 0}
		r.of[message] = m
	}
	m.left = min(m.left+now.Sub(m.at).Seconds()/repeatsEvery.Seconds(), repeatsAtOnce)
	m.at = now
	if m.left < 1 {
		m.out++
		e.Discard()
		return
	}
	m.left--
	if m.out > 0 {
		e.Int("left_out", m.out)
		m.out = 0
	}
}
