package main

import (
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
)

// TestLargeTable: a table of a gateway's flows is printed at once, also of very many. If each cell took the time of a row, this would take hours.
func TestLargeTable(t *testing.T) {
	var text strings.Builder
	w := newTable(paper{&text, 40}, "SOURCE\tQP")
	const rows = 200_000
	for i := range rows {
		w.row(i, i)
	}
	if err := w.Flush(); err != nil || strings.Count(text.String(), "\n") != rows+1 {
		t.Errorf("%d lines, %v", strings.Count(text.String(), "\n"), err)
	}
}

// TestTable: what a table prints on paper of a width, and without one.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		columns int
		want    string
	}{
		{0, `PORT    QP  RATE     PACKETS  WHY
fabric  -   10Gbps   1234567  the queue is long and senders are asked
wan     -   9.3Gbps  12       -
`},
		{40, `PORT    RATE     PACKETS
fabric  10Gbps   1234567
    the queue is long and senders are
    asked
wan     9.3Gbps  12
`},
		{16, `PORT    RATE
fabric  10Gbps
    the queue is
    long and
    senders are
    asked
wan     9.3Gbps
Not shown:
PACKETS
(--wide).
`},
		{3, `PORT
fabric
    the
    queue
    is
    long
    and
    senders
    are
    asked
wan
Not
shown:
PACKETS,
RATE
(--wide).
`},
	} {
		var text strings.Builder
		w := newTable(paper{&text, c.columns}, "PORT\tQP\tRATE\tPACKETS\tWHY", "PACKETS", "RATE")
		w.below = 4
		w.row("fabric", "-", "10Gbps", 1234567, "the queue is long and senders are asked")
		w.line([]string{"wan", "-", "9.3Gbps", "12", "-"})
		if err := w.Flush(); err != nil || text.String() != c.want {
			t.Errorf("on %d columns: %v\n%s\nwant\n%s", c.columns, err, text.String(), c.want)
		}
	}
}

// TestTableKeepsItsWidth: if the columns that must stay fit, so does every line; nothing that has a line of its own is lost.
func TestTableKeepsItsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(40, 200).Draw(t, "columns")
		cell := rapid.StringMatching(`[a-z0-9-]{1,30}`)
		var text strings.Builder
		w := newTable(paper{&text, columns}, "A\tB\tC\tD\tWHY", "D", "C", "B")
		w.below = 4
		var reasons []string
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			reason := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,12}`), 1, 40).Draw(t, "why"), " ")
			reasons = append(reasons, reason)
			w.row(cell.Draw(t, "a"), cell.Draw(t, "b"), cell.Draw(t, "c"), cell.Draw(t, "d"), reason)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Fatalf("%d columns on %d:\n%s", n, columns, text.String())
			}
		}
		words := strings.Join(strings.Fields(text.String()), " ")
		for _, reason := range reasons {
			if !strings.Contains(words, reason) {
				t.Fatalf("no %q in\n%s", reason, text.String())
			}
		}
	})
}

// TestNotificationsNarrow: with the longest IPv4 addresses and QP numbers, no line of the table is wider than the paper, and what is left out is named.
func TestNotificationsNarrow(t *testing.T) {
	qp, rate := uint32(0xffffff), uint64(1e9)
	n := report.Notification{
		Time: time.Date(2026, 1, 2, 13, 4, 5, 123456000, time.UTC), Outcome: "sent", Port: "wan", Class: "default", Kind: "long-haul-cnp-icmpv6", Action: "rate-reduce", Parameter: 98,
		SourceIP: netip.MustParseAddr("198.151.100.200"), DestinationIP: netip.MustParseAddr("198.151.101.201"), SourceQP: &qp, DestinationQP: qp, FlowRate: &rate,
		Why: "queue wan/default holds 6.42MB; senders are notified above 2MB; the flow arrives at 1Gbps, its fair rate is 100Mbps",
	}
	var table strings.Builder
	to := paper{&table, usualColumns}
	if err := printNotifications(to, &api.Notifications{Notifications: []report.Notification{n}}); err != nil {
		t.Fatal(err)
	}
	shown := followedColumns(to, report.Notifications.Text())
	if err := printFollowed(to, shown, headers(shown)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > usualColumns {
			t.Errorf("wider than %d columns: %s", usualColumns, line)
		}
	}
	for _, want := range []string{"Not shown: ", "KIND", "198.151.100.200", "16777215", "arrives at 1Gbps"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
}
