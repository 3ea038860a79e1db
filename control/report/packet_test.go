package report

import (
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/dataplane/trace"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestPacket: each decision in words, a line each.
func TestPacket(t *testing.T) {
	c, err := config.Parse("gw.yaml", []byte(`gateway: {name: gw, ipv4: 192.0.2.1}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 10Gbps}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 10Gbps}
`))
	if err != nil {
		t.Fatal(err)
	}
	base := func() trace.PacketRecord {
		return trace.PacketRecord{In: 0, Out: 1, Length: 1000, Bytes: 256, Plain: true, Kind: packet.RoCEv2, Notification: packet.NotANotification, Opcode: packet.RCSendOnly, TOS: 26<<2 | packet.ECT0,
			Flow: trace.FlowFound, Queued: true, Depth: 4000, KMin: 8000, Skip: trace.NoCongestion, Left: 12_000}
	}
	const (
		parse = "parse: RC SEND Only, DSCP 26, ECT(0), by the fast path\n"
		flow  = "flow: known to worker 2\npair: no source QP: nothing points to one yet\n"
		queue = "queue: wan/default, which held 4KB\n"
		calm  = "notify: no: the queue is not congested\n"
		short = "mark: no: the queue is not above K_min of 8KB\n"
		sent  = "send: by port wan, after 12µs"
	)
	for name, test := range map[string]struct {
		change func(r *trace.PacketRecord)
		want   string
	}{
		"plain":      {func(*trace.PacketRecord) {}, parse + flow + queue + calm + short + sent},
		"new":        {func(r *trace.PacketRecord) { r.Flow = trace.FlowBegan }, parse + strings.Replace(flow, "known to", "began with this packet at", 1) + queue + calm + short + sent},
		"full table": {func(r *trace.PacketRecord) { r.Flow = trace.FlowFull }, parse + "flow: unknown: the flow table is full of flows that must not be evicted\n" + queue + calm + short + sent},
		"marked":     {func(r *trace.PacketRecord) { r.MarkAsked, r.Marked = true, true }, parse + flow + queue + calm + "mark: CE was set\n" + sent},
		"not ECN":    {func(r *trace.PacketRecord) { r.MarkAsked = true }, parse + flow + queue + calm + "mark: no: it is not ECN-capable\n" + sent},
		"suppressed": {func(r *trace.PacketRecord) { r.Skip, r.Suppressed = 0, counters.FlowLimit }, parse + flow + queue + "notify: no: flow-limit\n" + short + sent},
		"share":      {func(r *trace.PacketRecord) { r.Skip = trace.SmallShare }, parse + flow + queue + "notify: no: its flow's share of the queue is not among the largest\n" + short + sent},
		"sent": {func(r *trace.PacketRecord) {
			r.Notified, r.Format, r.To = true, packet.LongHaulCNP, packet.Addr{Hi: 0, Lo: 0xffff0a010001}
		}, parse + flow + queue + "notify: long-haul-cnp to 10.1.0.1, by port dc\n" + short + sent},
		"Fast CNP": {func(r *trace.PacketRecord) {
			r.Notified, r.Format, r.To = true, packet.FastCNP, packet.Addr{Hi: 0, Lo: 0xffff0a010001}
		}, parse + flow + queue + "notify: fast-cnp to 10.1.0.1, by port dc\nmark: no: a Fast CNP has notified its sender instead\n" + sent},
		"no marks": {func(r *trace.PacketRecord) { r.KMin = 2000 }, parse + flow + queue + calm + "mark: no: the profile does not mark\n" + sent},
		"law": {func(r *trace.PacketRecord) { r.Law, r.Fair, r.Rate = true, 0.5, 0.25 },
			parse + flow + queue + "notify: no: the queue is short, or its flow is not above its fair rate; fair 4Gbps, flow 2Gbps\n" +
				"mark: no: the law notifies its sender in place of marking, or the queue is short\n" + sent},
		"no link": {func(r *trace.PacketRecord) { r.Lost, r.LostBy = true, burst.LinkDown }, parse + flow + queue + calm + short + "send: no: port wan dropped it: no link"},
		"waits":   {func(r *trace.PacketRecord) { r.Left = 0 }, parse + flow + queue + calm + short + "send: not yet: it waits for port wan"},
		"full": {func(r *trace.PacketRecord) {
			r.Queued, r.Ended, r.Reason, r.Left = false, true, counters.DroppedQueueOctets, 0
		},
			parse + flow + "send: not forwarded: dropped_packets_total{queue-full-bytes}"},
		"domain": {func(r *trace.PacketRecord) {
			*r = trace.PacketRecord{Kind: packet.RoCEv2, Opcode: packet.CNP, Notification: packet.FastCNP, Ended: true, Reason: counters.DroppedDomainOut}
		}, "parse: fast-cnp, DSCP 0, not ECN-capable, by all its headers\nend: not forwarded: dropped_packets_total{border-out}"},
	} {
		t.Run(name, func(t *testing.T) {
			r := base()
			test.change(&r)
			p := MakePacket(c, 2, &r, true)
			if got := p.Comment(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if q := MakePacket(c, 2, &r, false); q.Comment() != "" || q.Worker != 2 || q.Port != "dc" {
				t.Errorf("%+v", q)
			}
		})
	}
}
