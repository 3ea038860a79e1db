package scenario

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/cnpgate/cnpgate/sim"
)

// Outcome is the result of a scenario with one response. In JSON, times are nanoseconds, sizes bytes and rates bit/s.
type Outcome struct {
	Scenario string `json:"scenario"`
	Response string `json:"response"`
	Sweep    string `json:"sweep,omitempty"` // what a sweep set
	Seed     uint64 `json:"seed"`
	*sim.Result
	Names  []string    `json:"group_names,omitempty"`
	KMin   int64       `json:"k_min_bytes"` // of the first gateway, or without a gateway, of the slowest switch ports
	KMax   int64       `json:"k_max_bytes"`
	Series *sim.Series `json:"-"`
	FCTs   []int64     `json:"-"` // by flow, ns; 0 for one that hasn't ended
}

// outcome collects the results of a run.
func (s *Scenario) outcome(r Response, c *sim.Config, result *sim.Result, series *sim.Series) *Outcome {
	o := &Outcome{Scenario: s.Name, Response: r.String(), Seed: s.Seed(), Result: result, Names: s.groups, Series: series}
	if len(s.groups) == 0 {
		result.Groups = nil
	}
	if len(s.places) > 0 {
		first := &c.Network.Nodes[s.places[0].node].Gateway.Dataplane.Policy.Ports[portWAN]
		o.KMin, o.KMax = int64(first.KMin), int64(first.KMax)
	} else if ecn := c.Network.Switch.ECN; len(ecn) > 0 {
		o.KMin, o.KMax = ecn[0].KMin, ecn[0].KMax
	}
	return o
}

// WriteCSV writes the time series: a row for each sample, with a header.
func (o *Outcome) WriteCSV(w io.Writer) error {
	s := o.Series
	header := []string{"time_ns", "gateway_queue_bytes", "switch_queue_bytes", "notifications", "cnps"}
	columns := [][]int64{s.Gateway, s.Switch, s.Notified, s.CNPs}
	for i, h := range s.Senders {
		header, columns = append(header, fmt.Sprintf("host_%d_bps", h)), append(columns, s.Rates[i])
	}
	for i, h := range s.Senders {
		header, columns = append(header, fmt.Sprintf("host_%d_notifications", h)), append(columns, s.Asked[i])
	}
	for _, p := range s.Ports {
		header, columns = append(header, p.Gateway+"_queue_bytes", p.Gateway+"_fair_bps"), append(columns, p.Depth, p.Fair)
	}
	out := csv.NewWriter(w)
	if err := out.Write(header); err != nil {
		return err
	}
	row := make([]string, len(header))
	for i := range s.Gateway {
		row[0] = strconv.FormatInt(int64(i+1)*s.Every, 10)
		for n, values := range columns {
			row[n+1] = strconv.FormatInt(values[i], 10)
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
