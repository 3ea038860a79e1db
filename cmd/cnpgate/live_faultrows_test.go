//go:build live && !nodpdk

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// updateFaults says that the tests write what they measure into the table of faults in docs/operations.md. It isn't a flag, as package ontime runs tests in other processes.
var updateFaults = os.Getenv("CNPGATE_UPDATE_FAULTS") != ""

// cost is what a fault costs: frames, and time beyond the fault's own, until forwarding goes on.
type cost struct {
	lost  int
	pause time.Duration
}

// worst is the most that faults cost in this run, by the row of the table.
var worst = map[string]cost{}

// faulted measures what a fault cost, once its hosts are closed: the frames that a sent and b did not receive, and the longest time in which none came to b, without lasted,
// which is the fault's own.
func faulted(t *testing.T, row string, a, b *host, lasted time.Duration) {
	t.Helper()
	record(t, row, cost{deliveryOf(b.order, a.sent.Load()).lost, max(b.silence-lasted, 0)})
}

// record keeps what a fault of a row cost, if no other cost more.
func record(t *testing.T, row string, now cost) {
	t.Helper()
	t.Logf("%s: %d frames are lost; the longest pause: %v", row, now.lost, now.pause.Round(time.Millisecond))
	was := worst[row]
	worst[row] = cost{max(was.lost, now.lost), max(was.pause, now.pause)}
	if updateFaults {
		writeFault(t, row, worst[row])
	}
}

// writeFault writes the cells of a row.
func writeFault(t *testing.T, row string, c cost) {
	t.Helper()
	const page = "../../docs/operations.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, line, found := strings.Cut(string(text), "\n| "+row)
	line, after, _ := strings.Cut(line, "\n")
	cells := strings.Split(line, " | ")
	if !found || len(cells) != 6 {
		t.Fatalf("%s: no row of six cells begins with %q", page, row)
	}
	cells[2], cells[3] = fmt.Sprint(c.lost), fmt.Sprintf("%d ms", c.pause.Round(time.Millisecond).Milliseconds())
	if err := os.WriteFile(page, []byte(before+"\n| "+row+strings.Join(cells, " | ")+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
