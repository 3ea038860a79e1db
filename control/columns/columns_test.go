package columns

import (
	"slices"
	"strings"
	"testing"
	"time"
)

type row struct {
	Address   string            `json:"source_ip" column:"SOURCE,Sender,host"`
	QP        *uint32           `json:"source_qp" column:"SOURCE_QP,QP,qp,2"`
	Candidate *uint32           `json:"candidate_qp"`
	VLAN      []uint16          `json:"vlan" column:"VLAN,,place"`
	Tunnel    string            `json:"tunnel"`
	TunnelID  uint32            `json:"tunnel_id"`
	Rate      *uint64           `json:"rate_bps" column:"RATE,Rate,rate" doc:"Its rate."`
	Bytes     uint64            `json:"bytes" column:"BYTES,Bytes,bytes,1"`
	Counts    map[string]uint64 `json:"counts" column:"COUNTS,,counts"`
	Age       int64             `json:"age_ns" column:"AGE,,duration"`
	Up        int64             `json:"up_ms" column:"UP,,ms"`
	Deaf      bool              `json:"deaf" column:"REACTS,,reacts"`
	List      []string          `json:"list" column:"LIST,,long"`
	At        time.Time         `json:"at" column:"AT,,date"`
	Part      *float64          `json:"part" column:"PART,,percent"`
	Hash      string            `json:"hash" column:"HASH,,hash"`
	OnPage    string            `json:"page" column:",Page"`
	Nowhere   string            `json:"nowhere"`
}

func some[T any](v T) *T { return &v }

// TestCells: each form is written as it should, and what isn't known as a dash.
func TestCells(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{At: at}, "- - - - 0B - 0s - - - 2026-01-02_03:04:05 - -"},
		{row{"10.1.0.1", some[uint32](17), nil, []uint16{7}, "vxlan", 5000, some[uint64](1e9), 1500, map[string]uint64{"b": 2, "a": 1}, 3_723_000_000_000, 1500, true, []string{"x", "y"}, at,
			some(0.25), "0123456789abcdef", "p", "n"}, "10.1.0.1 17 vxlan:5000.7 1Gbps 1.5KB a:1,b:2 1h2m3s 1.5s no x,_y 2026-01-02_03:04:05 25% 0123456789ab"},
		{row{Candidate: some[uint32](9), VLAN: []uint16{100, 7}, Age: 1_234_567, Hash: "a\nb", At: at}, "- 9? 100.7 - 0B - 1.23ms - - - 2026-01-02_03:04:05 - a;_b"},
	} {
		cells := Cells(New[row]().Text(), &c.row)
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], " ", "_")
		}
		if got := strings.Join(cells, " "); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestColumns: a table has all columns of text and page, some of them first, in the wanted order; rows are ordered by numbers from the largest on, or else by texts.
func TestColumns(t *testing.T) {
	all := New[row]("rate_bps", "source_qp", "page", "bytes")
	if got := Names(all.Text()); !slices.Equal(got, strings.Fields("rate source_qp bytes source vlan counts age up reacts list at part hash")) {
		t.Error(got)
	}
	if got := all.Page("page", "rate_bps"); len(got) != 5 || got[0].Title != "Page" || got[1].Member != "rate_bps" || got[1].As != Rate || got[1].Doc != "Its rate." || got[4].Title != "Sender" {
		t.Errorf("%+v", got)
	}
	a, b, by := row{Address: "10.1.0.9", Rate: some[uint64](5), Bytes: 10}, row{Address: "10.1.0.10", Bytes: 9}, all.Text()
	for i, want := range map[int]int{0: -1, 2: -1, 3: 1} {
		if got := Compare(&by[i], &a, &b); got != want || Compare(&by[i], &b, &a) != -want {
			t.Errorf("%s: %d, want %d", by[i].Name, got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a column that doesn't exist is accepted")
		}
	}()
	New[row]("nowhere")
}
