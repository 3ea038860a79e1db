package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
)

// Fleet is what the API needs of the gateway's part in its fleet.
type Fleet interface {
	Status() fleetlink.FleetStatus
	// Question asks the other gateways for a path of the API, and returns the answers by name.
	Question(path string) map[string]json.RawMessage
	Episodes() ([]fleetlink.Episode, error)
}

// FleetAnswers is the answer to GET /v1/fleet/answers.
type FleetAnswers struct {
	Answers map[string]any    `json:"answers" doc:"The answer of each gateway that has answered, by its name."`
	Missing map[string]string `json:"missing,omitempty" doc:"The gateways that have not answered, by name, with what is known of them."`
}

// FleetEpisode is an episode of a gateway.
type FleetEpisode struct {
	Gateway string         `json:"gateway" doc:"Name of the gateway in the fleet."`
	Episode report.Episode `json:"episode" doc:"The episode, as in GET /v1/episodes."`
}

// FleetEpisodes is the answer to GET /v1/fleet/episodes.
type FleetEpisodes struct {
	Episodes []FleetEpisode `json:"episodes" doc:"The latest episodes of all gateways, the oldest first."`
}

// fleet answers requests about the fleet.
func (s *state) fleet(*request) (any, error) {
	f := s.gateway.Fleet()
	if f == nil {
		return fleetlink.None(), nil
	}
	return f.Status(), nil
}

// fleetAnswers asks all gateways, this one too.
func (s *Server) fleetAnswers(r *request) (any, error) {
	path := get[string](r, "path")
	if !mayAsk(path) {
		return nil, failed(http.StatusBadRequest, "path: %.100q can't be asked of other gateways; expected a resource of this API with one answer, such as /v1/flows?limit=10", path)
	}
	all := FleetAnswers{Answers: map[string]any{}}
	f := s.state.gateway.Fleet()
	if f == nil {
		return all, nil
	}
	for name, text := range f.Question(path) {
		var answer any
		if json.Unmarshal(text, &answer) == nil {
			all.Answers[name] = answer
		}
	}
	var own any
	status := f.Status()
	if json.Unmarshal(s.Get(path), &own) == nil {
		all.Answers[status.Name] = own
	}
	for i := range status.Members {
		if m := &status.Members[i]; all.Answers[m.Name] == nil {
			if all.Missing == nil {
				all.Missing = map[string]string{}
			}
			all.Missing[m.Name] = m.Absence()
		}
	}
	return all, nil
}

// mayAsk reports whether other gateways may be asked for a path: it begins a resource that is read, has one answer, and asks no others.
func mayAsk(path string) bool {
	name, _, _ := strings.Cut(path, "?")
	switch name {
	case HealthPath, CountersPath, FlowsPath, PairsPath, ProxiesPath, NotificationsPath, EpisodesPath, BGPPath, VersionPath, HintsPath, ModePath, DrainPath:
		return true
	}
	return false
}

func (s *state) fleetEpisodes(*request) (any, error) {
	f := s.gateway.Fleet()
	if f == nil {
		return FleetEpisodes{[]FleetEpisode{}}, nil
	}
	stored, err := f.Episodes()
	if err != nil {
		return nil, failed(http.StatusServiceUnavailable, "%w", err)
	}
	all := FleetEpisodes{[]FleetEpisode{}}
	for _, e := range stored {
		one := FleetEpisode{Gateway: e.Gateway}
		if json.Unmarshal(e.Episode, &one.Episode) == nil {
			all.Episodes = append(all.Episodes, one)
		}
	}
	return all, nil
}

// Get is the answer to a GET request for a path, for another gateway: JSON, or nil if other gateways may not ask for it.
func (s *Server) Get(path string) []byte {
	r, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil || !mayAsk(path) {
		return nil
	}
	w := &memoryWriter{header: http.Header{}}
	s.http.Handler.ServeHTTP(w, r)
	return w.body.Bytes()
}

// memoryWriter keeps an answer.
type memoryWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
func (w *memoryWriter) WriteHeader(int)             {}
