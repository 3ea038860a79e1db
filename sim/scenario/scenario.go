package scenario

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/fleet/bus"
	"github.com/cnpgate/cnpgate/sim"
)

// Scenario is one scenario that can be run with each of its responses.
type Scenario struct {
	Name      string
	Responses []Response
	Text      []byte // YAML, with the settings
	traffic
	obeys []formats // by host
	rtt   int64     // of the longest path, ns
}

// Files returns the content of a file that a scenario names.
type Files func(path string) ([]byte, error)

// needs lists the sections that a scenario must have.
const needs = "name, length, topology and traffic"

// Parse reads a scenario. name is the file's name in errors. Settings replace the file's values. The error is a *config.Error if the file
// has mistakes.
func Parse(name string, data []byte, set []Setting, files Files) (*Scenario, error) {
	doc, err := config.ParseDocument(name, needs, data)
	if err != nil {
		return nil, err
	}
	for _, o := range set {
		if err := o.apply(doc.Root); err != nil {
			return nil, err
		}
	}
	s := &Scenario{}
	if s.Text, err = marshal(doc.Root); err != nil {
		return nil, err
	}
	s.doc, s.d = doc, &document{}
	if err := fitNIC(doc.Root, files); err != nil {
		return nil, err
	}
	doc.Decode(s.d)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	s.Name = s.d.Name
	if n := s.Length() / s.sample(); n > sim.MaxSamples {
		doc.Problem(&s.d.Sample, "%d samples in %v; expected at most %d", n, s.d.Length, sim.MaxSamples)
	}
	s.buildTopology(files)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	s.rtt = longestRTT(&s.network)
	s.setFormats()
	s.buildTraffic(files)
	for i := range s.d.Responses {
		choice := &s.d.Responses[i]
		r := Response(*choice)
		if slices.Contains(s.Responses, r) {
			doc.Problem(choice, "%v is listed twice; expected each response once", r)
		}
		s.Responses = append(s.Responses, r)
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	for _, r := range s.Responses { // to report all mistakes in gateways' configurations now
		if _, err := s.Config(r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Seed is the scenario's seed.
func (s *Scenario) Seed() uint64 { return uint64(s.d.Seed) }

// Hosts is the number of hosts.
func (s *Scenario) Hosts() int { return s.hosts }

// Flows is the number of flows.
func (s *Scenario) Flows() int { return len(s.flows) }

// Sends reports whether a host sends a flow.
func (s *Scenario) Sends(host int) bool {
	return slices.ContainsFunc(s.flows, func(f sim.Flow) bool { return f.From == host })
}

// Length is the greatest length of the simulation, ns of virtual time.
func (s *Scenario) Length() int64 { return int64(s.d.Length) }

// sample is the time between two samples, ns.
func (s *Scenario) sample() int64 {
	const samples = 5000
	if s.doc.Given(&s.d.Sample) {
		return int64(s.d.Sample)
	}
	return max(s.Length()/samples, 1)
}

// Config makes the configuration of a simulation with a response.
func (s *Scenario) Config(r Response) (*sim.Config, error) {
	c := &sim.Config{Network: s.network, Flows: s.flows, Length: s.Length(), Sample: s.sample()}
	c.Network.Nodes, c.Network.Links = slices.Clone(s.network.Nodes), slices.Clone(s.network.Links)
	c.Network.Seed = s.Seed()
	c.Network.IOAM = r == FastCNPHPCC
	if f := &s.d.Fleet; s.doc.Given(f) {
		c.Network.Fleet = &sim.Fleet{
			Bus:        bus.Config{Delay: int64(f.Delay), Jitter: int64(f.Jitter), Loss: float64(f.Loss) / 1e6, Seed: s.Seed()},
			Bottleneck: f.Bottleneck,
		}
	}
	var ppfc []netip.Prefix
	for i := range s.places {
		gateway, err := s.gateway(&s.places[i], r)
		if err != nil {
			return nil, err
		}
		c.Network.Nodes[s.places[i].node].Gateway = gateway.Gateway
		ppfc = append(ppfc, gateway.ppfc...)
		if gateway.lossless {
			s.givePFC(&c.Network, &s.places[i])
		}
	}
	s.setHosts(c, r, ppfc)
	if err := s.addChanges(c, r); err != nil {
		return nil, err
	}
	return c, s.doc.Err()
}

// Run simulates a response from beginning to end. It calls progress, which may be nil, now and then; an error from progress ends the
// simulation.
func (s *Scenario) Run(r Response, progress func(sim.Progress) error) (*Outcome, error) {
	run, err := s.Start(r, nil)
	if err != nil {
		return nil, err
	}
	const events = 1 << 18 // between two calls of progress
	for more := true; more; {
		if more, err = run.Run(events); err == nil && progress != nil {
			err = progress(run.Progress())
		}
		if err != nil {
			return nil, run.failed(err)
		}
	}
	return run.Outcome()
}

// Running is a simulation of a scenario with one response, which its caller runs.
type Running struct {
	*sim.Sim
	Config   *sim.Config
	Response Response
	scenario *Scenario
}

// Start begins the simulation of a response. passed, if not nil, is called for each notification on a link.
func (s *Scenario) Start(r Response, passed func(*sim.Passage)) (*Running, error) {
	c, err := s.Config(r)
	if err != nil {
		return nil, err
	}
	c.Passed = passed
	run, err := sim.New(c)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return &Running{run, c, r, s}, nil
}

func (r *Running) failed(err error) error {
	return fmt.Errorf("scenario %s, response %s: %w", r.scenario.Name, r.Response, err)
}

// Outcome is the result up to now.
func (r *Running) Outcome() (*Outcome, error) {
	result, err := r.Result()
	if err != nil {
		return nil, r.failed(err)
	}
	o := r.scenario.outcome(r.Response, r.Config, result, r.Series())
	o.FCTs = r.FCTs()
	return o, nil
}

// WriteJSON writes results as a list, as cnpgate sim does.
func WriteJSON(w io.Writer, outcomes []*Outcome) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(outcomes)
}

// Outcome is the result of a scenario with one response. In JSON, times are nanoseconds, sizes bytes and rates bit/s.
type Outcome struct {
	Scenario string `json:"scenario"`
	Response string `json:"response"`
	Sweep    string `json:"sweep,omitempty"` // what a sweep set
	Seed     uint64 `json:"seed"`
	*sim.Result
	Names []string `json:"group_names,omitempty"`
	KMin  int64    `json:"k_min_bytes"` // of the first gateway, or without a gateway, of the slowest switch ports
	KMax  int64    `json:"k_max_bytes"`
	// Shortfall says what keeps the WAN of one gateway from being full without loss, in a few words, also if it is.
	Shortfall string      `json:"-"`
	Series    *sim.Series `json:"-"`
	FCTs      []int64     `json:"-"` // by flow, ns; 0 for one that hasn't ended
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
	o.Shortfall = shortfall(o)
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
	header, columns = append(header, "lost_packets"), append(columns, s.Lost)
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
