//go:build secondopinion

package synth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// TestSecondOpinion has tshark read traffic of all kinds: nothing is malformed, and it finds what the events say. Of CNPs
// and XRC packets tshark 4.0 knows no more than the BTH.
func TestSecondOpinion(t *testing.T) {
	var events []Event
	var frames [][]byte
	for _, v6 := range []bool{false, true} {
		c := busy(4)
		c.IPv6, c.Messages, c.Connections, c.Tenants, c.TwoTags = v6, 6, 16, 2, true
		c.Attack.Interval, c.Managers, c.Attack.Request, c.Attack.Managers = 50_000, Managers{MRA: .3, Stale: .2}, true, ForgedCM{All: true, Connect: true, REP: .5}
		some, _ := run(c)
		events = append(events, some...)
	}
	for i := range events {
		frames = append(frames, Frame(&events[i]))
	}
	args := []string{"-T", "fields", "-E", "separator=,"}
	for _, f := range []string{"infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.a", "infiniband.bth.padcnt",
		"infiniband.deth.srcqp", "infiniband.aeth.msn", "infiniband.reth.dmalen", "infiniband.mad.attributeid", "udp.srcport",
		"ieee8021ad.id", "vlan.id", "_ws.malformed"} {
		args = append(args, "-e", f)
	}
	lines := strings.Split(strings.TrimSuffix(opinion.Tshark(t, frames, args...), "\n"), "\n")
	if len(lines) != len(events) {
		t.Fatalf("tshark finds %d frames, want %d", len(lines), len(events))
	}
	bad := map[packet.Opcode]string{}
	for i := range events {
		if want := asTshark(&events[i]); lines[i] != want {
			bad[events[i].Packet.Opcode] = fmt.Sprintf("frame %d: tshark finds %s, want %s", i+1, lines[i], want)
		}
	}
	for op, text := range bad {
		t.Errorf("%v: %s", op, text)
	}
}

func asTshark(e *Event) string {
	p := &e.Packet
	h := p.Opcode.Headers()
	if p.Opcode.Transport() == "XRC" {
		h = 0
	}
	one := func(has bool, format string, v any) string {
		if !has {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	a := 0
	if e.AckReq {
		a = 1
	}
	attr := packet.CMAttribute(0)
	if e.MAD != nil {
		attr = attrOf(e.MAD)
	}
	return fmt.Sprintf("%d,0x%06x,%d,%d,%d,%s,%s,%s,%s,%d,%s,%s,", p.Opcode, p.DestQP, p.PSN, a, e.Pad,
		one(h&packet.HasDETH != 0, "0x%08x", p.SourceQP), one(h&packet.HasAETH != 0, "%d", e.MSN), one(h&packet.HasRETH != 0, "%d", e.DMALength),
		one(e.MAD != nil, "0x%04x", attr), p.SrcPort,
		one(p.OuterTag.TPID() == packet.EtherTypeSTag, "%d", p.OuterTag.VID()), one(p.OuterTag.TPID() == packet.EtherTypeCTag, "%d", p.OuterTag.VID()))
}
