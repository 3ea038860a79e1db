package health

import (
	"fmt"
	"os"
)

var Debug = os.Getenv("HDEBUG") != ""

func dbg(f string, a ...any) {
	if Debug {
		fmt.Printf(f+"\n", a...)
	}
}

func (h *Half) dbgs(p *Packet) string {
	n := h.repeat.naks.of(p.PSN, h.answers.acked)
	after := int64(0)
	if n != nil {
		after = p.Time - n.at
	}
	f := func(s span) string {
		return fmt.Sprintf("%d:%.3g/%.3g/%.3g", s.n, float64(s.least)/1e6, float64(s.mean)/1e6, float64(s.most)/1e6)
	}
	return fmt.Sprintf("afternak %.3g silent %.3g afterack %.3g turn %s room %s naks %s clean %s idle %s int %s", float64(after)/1e6, float64(p.Time-h.sent)/1e6, float64(p.Time-h.answers.at)/1e6, f(h.turn), f(h.room), f(h.naks), f(h.clean), f(h.idle), f(h.Interval))
}
