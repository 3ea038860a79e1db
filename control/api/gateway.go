package api

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// Health is the answer to GET /v1/health: with status 200 if all ports forward, else with 503.
type Health struct {
	Healthy bool `json:"healthy" doc:"Whether all ports forward every frame."`
	// Problems are the ports that don't forward, by name, with what happened to each.
	Problems map[string]string `json:"problems" doc:"Why ports don't forward, by port."`
	// Services are those that don't work, by configuration key, and why. Forwarding depends on none, so they don't change Healthy.
	Services map[string]string `json:"services,omitempty" doc:"Services that don't work, by configuration key, and why. They are tried again; forwarding depends on none."`
	Notices  []string          `json:"notices,omitempty" doc:"What is in force besides the configuration file, such as another mode."`
}

// Version is the answer to GET /v1/version.
type Version struct {
	report.Identity
	GoVersion string `json:"go_version" doc:"The Go release that the program was built with."`
	Platform  string `json:"platform" doc:"Operating system and architecture."`
}

// Mark is the answer to POST /v1/mark.
type Mark struct {
	Time time.Time `json:"time" doc:"When the counters were marked."`
}

// Episodes is the answer to GET /v1/episodes.
type Episodes struct {
	Episodes []report.Episode `json:"episodes" doc:"The congestion episodes, oldest first."`
}

// Config is the answer to GET /v1/config.
type Config struct {
	File       string `json:"file" doc:"Name of the file."`
	Path       string `json:"path" doc:"Absolute path of the file."`
	ConfigHash string `json:"config_hash" doc:"SHA-256 of the text, hexadecimal."`
	Text       string `json:"text" doc:"YAML, as it was read."`
	Effective  string `json:"effective" doc:"YAML of what is in force, with the defaults and what is calculated as comments."`
}

// Reloaded is the answer to POST /v1/reload, /v1/reload/confirm and /v1/reload/revert.
type Reloaded struct {
	Changes    []string `json:"changes" doc:"Keys whose values have changed, such as ports[0].rate."`
	ConfigHash string   `json:"config_hash" doc:"SHA-256 of the configuration in force, hexadecimal."`
	// Values are Changes with the values.
	Values []config.Change `json:"values,omitempty" doc:"The changed keys with their values."`
	// NeedsRestart is of a dry run.
	NeedsRestart []string   `json:"needs_restart,omitempty" doc:"Changes that need a restart, each with file, line and column."`
	ConfirmBy    *time.Time `json:"confirm_by,omitempty" doc:"When the gateway goes back to the former configuration, unless this one is confirmed."`
	// Services are of a reload that was done.
	Services map[string]string `json:"services,omitempty" doc:"Services that don't work now, by configuration key, and why. They are tried again."`
}

// Reloads is the answer to GET /v1/reloads.
type Reloads struct {
	Reloads []ReloadRecord `json:"reloads" doc:"The reloads, oldest first; the first one is the start."`
}

// ReloadRecord is an attempt to change the configuration in force.
type ReloadRecord struct {
	Time       time.Time `json:"time" doc:"When it happened, RFC 3339." column:"TIME,Time,date"`
	Outcome    string    `json:"outcome" enum:"started,reloaded,refused,confirmed,reverted" doc:"What became of it. The first record is the start of the gateway." column:"OUTCOME,Outcome,state"`
	Changes    []string  `json:"changes,omitempty" doc:"Keys whose values have changed." column:"CHANGES,Changed keys,long"`
	ConfigHash string    `json:"config_hash" doc:"SHA-256 of the configuration in force afterwards, hexadecimal." column:"CONFIGURATION,Configuration afterwards,hash"`
	Error      string    `json:"error,omitempty" doc:"Why it was refused." column:"ERROR,Error,long"`
}

// ReloadRequest says how to reload.
type ReloadRequest struct {
	DryRun  bool          // change nothing
	Confirm time.Duration // go back after this time, unless the reload is confirmed; 0: don't
}

// Bounds of the time to confirm a reload.
const (
	LeastConfirm = time.Second
	MostConfirm  = 24 * time.Hour
)

// Conflict is the error of a request that doesn't suit the gateway's state.
type Conflict struct{ Err error }

func (c Conflict) Error() string { return c.Err.Error() }

// Modes is the answer to GET and PUT /v1/mode.
type Modes struct {
	Ports []PortMode `json:"ports" doc:"In the order of the configuration."`
}

// PortMode is the mode of a port: whether its queue's congestion is answered, or only observed.
type PortMode struct {
	Port       string `json:"port" doc:"Name of the port." column:"PORT"`
	Mode       string `json:"mode" doc:"send or observe: the one in force." column:"MODE"`
	Configured string `json:"configured" doc:"notifications.mode of the configuration, which a reload restores." column:"AFTER A RELOAD"`
}

// ModeRequest is the body of PUT /v1/mode.
type ModeRequest struct {
	Mode string `json:"mode" enum:"send,observe" doc:"The mode to set."`
	Port string `json:"port,omitempty" doc:"Only this port; all ports without it."`
}

// Drain is the answer to the requests at /v1/drain.
type Drain struct {
	Draining bool     `json:"draining" doc:"Whether no sender is asked to slow down any more."`
	Safe     bool     `json:"safe" doc:"Whether the gateway can be stopped without leaving a sender slowed down."`
	Waits    []string `json:"waits" doc:"What a stop would leave, in words."`
}

// LogLevel is the answer to GET and PUT /v1/log-level.
type LogLevel struct {
	LogLevel   string `json:"log_level" doc:"The lowest level that is logged."`
	Configured string `json:"configured" doc:"management.log_level of the configuration, which a reload restores."`
}

// LogLevelRequest is the body of PUT /v1/log-level.
type LogLevelRequest struct {
	LogLevel string `json:"log_level" doc:"Lowest severity that is logged." enum:"debug,info,warn,error"`
}

// state answers what concerns the gateway as a whole.
type state struct {
	gateway Gateway
	ports   []string // names
	marked  atomic.Pointer[mark]
}

// mark has the counters at the time of a request to mark them.
type mark struct {
	time     time.Time
	counters *report.Counters
}

func (s *state) health(*request) (any, error) {
	h := Health{Problems: s.gateway.Problems(), Services: s.gateway.Services(), Notices: s.gateway.Notices()}
	if h.Healthy = len(h.Problems) == 0; !h.Healthy {
		return reply{http.StatusServiceUnavailable, h}, nil
	}
	return h, nil
}

func (s *state) version(*request) (any, error) {
	return Version{s.gateway.Identity(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, nil
}

func (s *state) bgp(*request) (any, error) {
	status := s.gateway.BGP()
	if status.Announced == nil { // lists are never null
		status.Announced = []netip.Prefix{}
	}
	if status.Peers == nil {
		status.Peers = []advertise.Peer{}
	}
	return status, nil
}

// mark notes the present counters, in place of an earlier mark.
func (s *state) mark(*request) (any, error) {
	m := &mark{time.Now().UTC(), s.gateway.Counters()}
	s.marked.Store(m)
	return Mark{m.time}, nil
}

// counters answers with the counters since the gateway's start, or since the mark.
func (s *state) counters(r *request) (any, error) {
	c := s.gateway.Counters()
	if get[string](r, "since") == "" {
		return c, nil
	}
	m := s.marked.Load()
	if m == nil {
		return nil, failed(http.StatusConflict, "no counters are marked since the gateway started; mark them: cnpgate show counters --mark, or POST %s", MarkPath)
	}
	c.Since(m.counters, m.time)
	return c, nil
}

func (s *state) episodes(r *request) (any, error) {
	port, since := get[string](r, "port"), get[uint64](r, "since")
	a := Episodes{[]report.Episode{}}
	for _, e := range s.gateway.Episodes() {
		if (port == "" || e.Port == port) && e.ID >= since {
			a.Episodes = append(a.Episodes, e)
		}
	}
	return a, nil
}

func (s *state) config(*request) (any, error) {
	f := &s.gateway.Config().File
	path, err := filepath.Abs(f.Name) // an error: the working directory is gone
	return Config{f.Name, path, f.Hash(), string(f.Text), s.gateway.Config().Effective()}, err
}

func (s *state) reload(r *request) (any, error) {
	how := ReloadRequest{DryRun: get[bool](r, "dry_run"), Confirm: get[time.Duration](r, "confirm")}
	if how.DryRun && how.Confirm > 0 {
		return nil, failed(http.StatusBadRequest, "dry_run and confirm are both given; expected one of them")
	}
	return reloaded(s.gateway.Reload(how))
}

func (s *state) confirm(*request) (any, error) { return reloaded(s.gateway.Confirm()) }

func (s *state) revert(*request) (any, error) { return reloaded(s.gateway.Revert()) }

// reloaded is what a reload has changed, or why nothing has changed: with status 422 for mistakes in the file and changes that need a restart.
func reloaded(r *Reloaded, err error) (any, error) {
	var mistakes *config.Error
	var conflict Conflict
	switch {
	case errors.As(err, &mistakes):
		return nil, failed(http.StatusUnprocessableEntity, "the configuration was not reloaded; the old one stays in force:\n%w", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, failed(http.StatusConflict, "the configuration was not reloaded; the old one stays in force: %w", err)
	case errors.As(err, &conflict):
		return nil, failed(http.StatusConflict, "%w", err)
	}
	return r, err
}

func (s *state) reloads(*request) (any, error) { return Reloads{s.gateway.Reloads()}, nil }

func (s *state) modes(*request) (any, error) { return Modes{s.gateway.Modes()}, nil }

func (s *state) setMode(r *request) (any, error) {
	values, err := r.body(`one JSON object, such as {"mode":"observe","port":"wan"}`, "mode", "port")
	if err != nil {
		return nil, err
	}
	mode, port := values["mode"], values["port"]
	if !slices.Contains(config.Modes, mode) {
		return nil, failed(http.StatusBadRequest, "mode is %.50q; expected %s", mode, yamldoc.Either(config.Modes))
	}
	if port != "" && !slices.Contains(s.ports, port) {
		return nil, failed(http.StatusBadRequest, "port is %.50q; expected %s", port, strings.Join(s.ports, ", "))
	}
	if err := s.gateway.SetMode(port, mode == config.ModeObserve); err != nil {
		return nil, failed(http.StatusConflict, "%w", err)
	}
	return s.modes(r)
}

func (s *state) drained(*request) (any, error) {
	d := s.gateway.Drained()
	d.Waits = append([]string{}, d.Waits...)
	return d, nil
}

// drain begins a drain, or ends it.
func (s *state) drain(on bool) action {
	return func(r *request) (any, error) {
		s.gateway.SetDrain(on)
		return s.drained(r)
	}
}

func (s *state) logLevel(*request) (any, error) {
	return LogLevel{s.gateway.LogLevel(), s.gateway.Config().Management.LogLevel}, nil
}

func (s *state) setLogLevel(r *request) (any, error) {
	values, err := r.body(`one JSON object, such as {"log_level":"debug"}`, "log_level")
	if err != nil {
		return nil, err
	}
	level := values["log_level"]
	if !slices.Contains(config.LogLevels, level) {
		return nil, failed(http.StatusBadRequest, "log_level is %.50q; expected %s", level, strings.Join(config.LogLevels, ", "))
	}
	s.gateway.SetLogLevel(level)
	return s.logLevel(r)
}

// Reload makes the gateway read its configuration again.
func (c *Client) Reload(ctx context.Context, r ReloadRequest) (*Reloaded, error) {
	query := url.Values{}
	if r.DryRun {
		query.Set("dry_run", "true")
	}
	if r.Confirm > 0 {
		query.Set("confirm", r.Confirm.String())
	}
	return Do[Reloaded](ctx, c, http.MethodPost, Path(ReloadPath, query), nil)
}
