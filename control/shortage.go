package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/dataplane"
)

// nearlyFull is the part of a table's entries, in percent, above which it is a concern.
const nearlyFull = 90

// shortages are the tables of fixed size, with what happens once one is full, and what to do. Frames are forwarded in each case; docs/operations.md has the same.
var shortages = map[string]string{
	"flows":         "new flows end others, or are forwarded and never notified: raise flows.capacity",
	"pairing":       "further flows are forwarded, and never notified in a format that names their QP: raise flows.paired",
	"pairing-hosts": "flows between further hosts are forwarded, and never notified in a format that names their QP: raise flows.paired",
	"senders":       "further senders get no Resume and no stricter notification: look for a flood of flows",
	"destinations":  "further senders are notified later: look for a flood of flows",
	"frames":        "notifications find no buffer, then devices drop frames: please report it",
	"log":           "further lines are lost, and counted: its reader stands still",
}

// frameBuffers are devices whose frames have buffers from one pool.
type frameBuffers interface{ Buffers() (used, size int) }

// occupied are all tables of fixed size. It reads them as a whole.
func (c *concerns) occupied() []dataplane.Occupied {
	g := c.g
	all := g.plane.Occupied(time.Since(g.begin).Nanoseconds())
	if d, ok := g.devices.(frameBuffers); ok {
		used, size := d.Buffers()
		all = append(all, dataplane.Occupied{Table: "frames", Used: used, Size: size})
	}
	if g.options.LogLines != nil {
		waiting, size, _ := g.options.LogLines()
		all = append(all, dataplane.Occupied{Table: "log", Used: waiting, Size: size})
	}
	return all
}

// shortOf says which tables are nearly full.
func (c *concerns) shortOf(tables []dataplane.Occupied) (all []string) {
	for _, t := range tables {
		if t.Used*100 < t.Size*nearlyFull {
			continue
		}
		text := fmt.Sprintf("table %s: more than %d %% of its %d entries are in use; once it is full, %s", t.Table, nearlyFull, t.Size, shortages[t.Table])
		if t.Table == "pairing" || t.Table == "pairing-hosts" {
			var answer api.FlowsBody
			_ = json.Unmarshal(c.g.servers.api.Get(fmt.Sprintf("%s?limit=%d", api.FlowsPath, examinedFlows)), &answer) // without an answer nobody is named
			text += unpairedMost(answer.Flows)
		}
		all = append(all, text)
	}
	return all
}

// unpairedMost names the source with most flows that have no source QP, which is what fills the pairing table; "" if there is none.
func unpairedMost(flows []api.Flow) string {
	unpaired, sum, most := map[string]int{}, 0, ""
	for i := range flows {
		f := &flows[i]
		if f.SourceQP != nil {
			continue
		}
		source := f.SourceIP.String()
		unpaired[source]++
		sum++
		if order := cmp.Compare(unpaired[source], unpaired[most]); most == "" || order > 0 || order == 0 && source < most {
			most = source
		}
	}
	if most == "" {
		return ""
	}
	return fmt.Sprintf(", or stop what %s does: of %d flows without a source QP that were looked at, it sends %d", most, sum, unpaired[most])
}
