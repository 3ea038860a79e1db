package replay_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestHealthConnectionsLimit: if two hosts have more connections than are followed at a time, those that are left out are said to be, and the sums have them all
// the same.
func TestHealthConnectionsLimit(t *testing.T) {
	const connections = 40
	job := lossy{op: endpoint.Write, bytes: 16384, messages: 10, timeout: 20 * msec, delay: [2]int64{20 * usec, 60 * usec}, rule: loses(50, 0, true)}
	_, path := job.run(t, 3)
	var all []frame
	one := frames(t, readFile(t, path))
	for n := range connections {
		for _, f := range one {
			f.octets, f.at = slices.Clone(f.octets), f.at+int64(n)*1000*msec
			f.octets[f.parse().BTH+5] = byte(n) // of the destination QP
			all = append(all, f)
		}
	}
	path = rewritten(t, all)
	whole := healthOf(t, path)
	c, err := replay.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := diagnosed(c, replay.HealthOptions{Connections: 8})
	if err != nil {
		t.Fatal(err)
	}
	said := func(r *health.Report) bool {
		return slices.ContainsFunc(r.Notes, func(n health.Note) bool { return n.Name == health.NoteUnlisted })
	}
	got, want := &r.Summary, &whole.Summary
	if want.Connections != connections || said(whole) || want.LostDownstream == 0 {
		t.Fatalf("without a limit: %+v", want)
	}
	if got.Connections != 8 || !said(r) {
		t.Errorf("%d connections, notes %+v; want 8, and a note of the others", got.Connections, r.Notes)
	}
	if got.Packets != uint64(len(all)) || got.GoodputBytes != want.GoodputBytes || got.LostDownstream != want.LostDownstream || got.Retransmitted != want.Retransmitted || got.Hosts != want.Hosts || got.DurationNS != want.DurationNS {
		t.Errorf("sums %+v, want those of all: %+v", got, want)
	}
}

// TestICRCsOfSharedCNPs: a CNP belongs to each share of a capture that is judged in shares, and yet counts once.
func TestICRCsOfSharedCNPs(t *testing.T) {
	var records []record
	for n := range uint32(20) {
		at := n * 1000
		src := fmt.Sprintf("10.1.0.%d", n+1)
		cnp := testkit.RoCE{Src: src, Dst: "10.9.0.9", DestQP: 9, Opcode: packet.CNP}.Frame()
		cnp[len(cnp)-1] ^= 1 // of the ICRC
		records = append(records, whole(0, at, testkit.RoCE{Src: src, Dst: "10.9.0.9", DestQP: 100, PSN: 1, Size: 100}.Frame()), whole(0, at+1, cnp))
	}
	c, err := replay.OpenFrom(replay.Source{Name: "shares.pcap", From: bytes.NewReader(classic(binary.LittleEndian, micro, 1, records...))})
	if err != nil {
		t.Fatal(err)
	}
	r, err := diagnosed(c, replay.HealthOptions{Connections: 2})
	if err != nil {
		t.Fatal(err)
	}
	wrong := uint64(0)
	for _, v := range r.Verdicts {
		if v.Name == health.WrongICRC {
			wrong += v.Weight
		}
	}
	if wrong != 20 {
		t.Errorf("%d wrong ICRCs, want 20: %+v", wrong, r.Verdicts)
	}
}
