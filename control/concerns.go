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
	again  chan struct{} // has a value when another configuration is in force
	mutex  sync.Mutex
	all    []string
	tables []dataplane.Occupied
	file   bool // the file differs
}

// addTo adds the metric of the file.
func (c *concerns) addTo(v telemetry.Values) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	differs := uint64(0)
	if c.file {
		differs = 1
	}
	v.Add(telemetry.ConfigFileDiffers, "", differs)
}

func (c *concerns) list() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.all)
}

// watchConcerns looks at the host and at the traffic until the context ends, and logs what is new.
func (g *gateway) watchConcerns(ctx context.Context) {
	tick := time.NewTicker(concernsEvery)
	defer tick.Stop()
	for {
		g.lookAtConcerns()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-g.concerns.again:
		}
	}
}

func (g *gateway) lookAtConcerns() {
	var all []string
	if g.options.Concerns != nil {
		all = g.options.Concerns(g.running.Load())
	}
	if text := g.swapped(); text != "" {
		all = append(all, text)
	}
	tables := g.tables()
	all = append(all, g.shortOf(tables)...)
	if fleet := g.fleetStatus(); time.Since(g.begin) > fleetJoins {
		all = append(all, fleet.Problems()...)
	}
	differs := g.fileDiffers()
	if differs {
		all = append(all, g.running.Load().File.Name+" differs from the configuration in force, and the next start uses the file: cnpgate reload --dry-run prints what would change")
	}
	before := g.concerns.list()
	for _, text := range all {
		if !slices.Contains(before, text) {
			g.options.Log.Warn().Msg(sentence(text))
		}
	}
	g.concerns.mutex.Lock()
	g.concerns.all, g.concerns.tables, g.concerns.file = all, tables, differs
	g.concerns.mutex.Unlock()
}

// fileDiffers reports whether the file has another text than the configuration in force: after a reload with --confirm that went back, or an edit.
func (g *gateway) fileDiffers() bool {
	f := &g.running.Load().File
	text, err := os.ReadFile(f.Name)
	return err == nil && !bytes.Equal(text, f.Text)
}

// swapped says that the fabric and the WAN look swapped: the endpoints that may be notified are the fabric's, but they all send from the WAN. Nobody would ever be
// notified. It returns "" if they don't, or if too little is known.
func (g *gateway) swapped() string {
	c := g.running.Load()
	var answer api.FlowsBody
	if len(c.Endpoints) == 0 || json.Unmarshal(g.servers.api.Get(fmt.Sprintf("%s?limit=%d", api.FlowsPath, examinedFlows)), &answer) != nil {
		return ""
	}
	isFabric := map[string]bool{}
	for i := range c.Ports {
		isFabric[c.Ports[i].Name] = c.Ports[i].Role == dataplane.Fabric
	}
	fromWAN := 0
	for i := range answer.Flows {
		f := &answer.Flows[i]
		_, granted := c.Dataplane.Policy.Who.Endpoints.Lookup(packet.AddrFrom(f.SourceIP))
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
