package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/telemetry"
)

const (
	concernsEvery = 10 * time.Second
	fleetJoins    = 15 * time.Second // until the others have been heard
	// swappedFlows is how many flows of granted endpoints have to come from the WAN, and none from the fabric, before the ports count as swapped.
	swappedFlows = 4
	// examinedFlows is the number of flows of a look: the API's most.
	examinedFlows = 1024
)

// concerns are what harms the gateway although it forwards, as far as the last look has found. Any goroutine may read it.
type concerns struct {
	g      *gateway
	again  chan struct{} // has a value when another configuration is in force
	mutex  sync.Mutex
	all    []string
	tables []dataplane.Occupied
	file   bool // the file differs
}

// addTo adds the metrics: whether the file differs, how full the tables are, and what the log has lost.
func (c *concerns) addTo(v telemetry.Values) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	differs := uint64(0)
	if c.file {
		differs = 1
	}
	v.Add(telemetry.ConfigFileDiffers, "", differs)
	for _, t := range c.tables {
		v.Add(telemetry.TableUsed, t.Table, uint64(t.Used))
		v.Add(telemetry.TableSize, t.Table, uint64(t.Size))
	}
	if c.g.options.LogLines != nil {
		_, _, lost := c.g.options.LogLines()
		v.Add(telemetry.LogLinesLost, "", lost)
	}
}

func (c *concerns) list() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.all)
}

// watch looks at the host and at the traffic until the context ends, and logs what is new.
func (c *concerns) watch(ctx context.Context) {
	tick := time.NewTicker(concernsEvery)
	defer tick.Stop()
	for {
		c.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.again:
		}
	}
}

func (c *concerns) look() {
	g := c.g
	var all []string
	if g.options.Concerns != nil {
		all = g.options.Concerns(g.running.Load())
	}
	if text := c.swapped(); text != "" {
		all = append(all, text)
	}
	tables := c.occupied()
	all = append(all, c.shortOf(tables)...)
	if fleet := g.fleetStatus(); time.Since(g.begin) > fleetJoins {
		all = append(all, fleet.Problems()...)
	}
	differs := c.fileDiffers()
	if differs {
		all = append(all, g.running.Load().File.Name+" differs from the configuration in force, and the next start uses the file: cnpgate reload --dry-run prints what would change")
	}
	before := c.list()
	for _, text := range all {
		if !slices.Contains(before, text) {
			g.options.Log.Warn().Msg(sentence(text))
		}
	}
	c.mutex.Lock()
	c.all, c.tables, c.file = all, tables, differs
	c.mutex.Unlock()
}

// fileDiffers reports whether the file has another text than the configuration in force: after a reload with --confirm that went back, or an edit.
func (c *concerns) fileDiffers() bool {
	f := &c.g.running.Load().File
	text, err := os.ReadFile(f.Name)
	return err == nil && !bytes.Equal(text, f.Text)
}

// swapped says that the fabric and the WAN look swapped: the endpoints that may be notified are the fabric's, but they all send from the WAN. Nobody would ever be
// notified. It returns "" if they don't, or if too little is known.
func (c *concerns) swapped() string {
	now := c.g.running.Load()
	var answer api.FlowsBody
	if len(now.Endpoints) == 0 || json.Unmarshal(c.g.servers.api.Get(fmt.Sprintf("%s?limit=%d", api.FlowsPath, examinedFlows)), &answer) != nil {
		return ""
	}
	isFabric := map[string]bool{}
	for i := range now.Ports {
		isFabric[now.Ports[i].Name] = now.Ports[i].Role == dataplane.Fabric
	}
	fromWAN := 0
	for i := range answer.Flows {
		f := &answer.Flows[i]
		_, granted := now.Dataplane.Policy.Who.Endpoints.Lookup(packet.AddrFrom(f.SourceIP))
		switch {
		case !granted:
		case isFabric[f.Port]:
			return ""
		default:
			fromWAN++
		}
	}
	if fromWAN < swappedFlows {
		return ""
	}
	return fmt.Sprintf("fabric and WAN look swapped: %d flows of endpoints come from the WAN and none from the fabric, so nobody is notified; exchange the devices of the ports, or their roles", fromWAN)
}
