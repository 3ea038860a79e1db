package report

import (
	"maps"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/pairing"
	"pgregory.net/rapid"
)

// TestListed: however many flows have ended, the report lists Most of them, those with most notifications and bytes; its sums have the others, exactly;
// and no more than twice as many are kept meanwhile.
func TestListed(t *testing.T) {
	rig := testkit.New(t, testkit.Setup{})
	rapid.Check(t, func(t *rapid.T) {
		flows := Flows{Most: rapid.IntRange(1, 40).Draw(t, "most")}
		var want FlowsLeft
		n := rapid.IntRange(0, 300).Draw(t, "flows")
		for i := range n {
			r := dataplane.FlowRecord{
				Key:     flowtable.Key{Src: packet.Addr{Lo: uint64(i)}, DestQP: uint32(i)},
				Traffic: pairing.Traffic{Packets: 1 + uint64(i), Bytes: rapid.Uint64Range(64, 1000).Draw(t, "bytes")},
				Marked:  rapid.Uint64Range(0, 2).Draw(t, "marked"), Ended: pairing.EndedAged,
			}
			r.Notified[packet.StandardCNP] = rapid.Uint32Range(0, 3).Draw(t, "notified")
			flows.Ended(&r)
			f := MakeFlow(&r)
			want.add(&f)
			if len(flows.kept) > 2*flows.Most {
				t.Fatalf("%d flows are kept, of which %d are listed", len(flows.kept), flows.Most)
			}
		}
		for range 2 { // a second report is the same
			listed, left := flows.list(rig.Plane)
			if len(listed) != min(n, flows.Most) || (left != nil) != (n > flows.Most) {
				t.Fatalf("%d of %d flows are listed, expected %d", len(listed), n, flows.Most)
			}
			sum, least, most := FlowsLeft{}, uint64(1<<62), uint64(0)
			if left != nil {
				sum = *left
				sum.Notifications, sum.QPState, sum.Ended = maps.Clone(left.Notifications), maps.Clone(left.QPState), maps.Clone(left.Ended)
			}
			for i := range listed {
				sum.add(&listed[i])
				least = min(least, listed[i].Notifications["standard-cnp"])
			}
			if sum.Flows != want.Flows || sum.Packets != want.Packets || sum.Bytes != want.Bytes || sum.ECNMarked != want.ECNMarked ||
				!maps.Equal(sum.Notifications, want.Notifications) || !maps.Equal(sum.QPState, want.QPState) || !maps.Equal(sum.Ended, want.Ended) {
				t.Fatalf("together %+v, expected %+v", sum, want)
			}
			if left != nil {
				most = left.Notifications["standard-cnp"]
			}
			if least == 0 && most > 0 {
				t.Fatalf("a flow without notifications is listed, and %d of others are left out", most)
			}
		}
	})
}
