package api

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
)

// Config is the answer to GET /v1/config.
type Config struct {
	File       string `json:"file" doc:"Name of the file."`
	Path       string `json:"path" doc:"Absolute path of the file."`
	ConfigHash string `json:"config_hash" doc:"SHA-256 of the text, hexadecimal."`
	Text       string `json:"text" doc:"YAML, as it was read."`
}

// Reloaded is the answer to POST /v1/reload, /v1/reload/confirm and /v1/reload/revert.
type Reloaded struct {
	Changes    []string `json:"changes" doc:"Keys whose values have changed, such as ports[0].rate."`
	ConfigHash string   `json:"config_hash" doc:"SHA-256 of the configuration in force, hexadecimal."`
	// NeedsRestart is of a dry run.
	NeedsRestart []string   `json:"needs_restart,omitempty" doc:"Changes that need a restart, each with file, line and column."`
	ConfirmBy    *time.Time `json:"confirm_by,omitempty" doc:"When the gateway goes back to the former configuration, unless this one is confirmed."`
}

// ReloadRequest says how to reload.
type ReloadRequest struct {
	DryRun  bool          // change nothing
	Confirm time.Duration // go back after this time, unless the reload is confirmed; 0: don't
}

// Conflict is the error of a request that doesn't suit the gateway's state.
type Conflict struct{ Err error }

func (c Conflict) Error() string { return c.Err.Error() }

// Bounds of the time to confirm a reload.
const (
	LeastConfirm = time.Second
	MostConfirm  = 24 * time.Hour
)

func reloadRequest(parameters map[string]string) (r ReloadRequest, err error) {
	for key, text := range parameters {
		switch key {
		case "dry_run":
			if r.DryRun, err = strconv.ParseBool(text); err != nil {
				return r, failed(http.StatusBadRequest, "dry_run is %.50q; expected true or false", text)
			}
		case "confirm":
			if r.Confirm, err = config.ParseDuration(text); err != nil || r.Confirm < LeastConfirm || r.Confirm > MostConfirm {
				return r, failed(http.StatusBadRequest, "confirm is %.50q; expected a time from %v to %v, such as 60s", text, LeastConfirm, MostConfirm)
			}
		}
	}
	if r.DryRun && r.Confirm > 0 {
		return r, failed(http.StatusBadRequest, "dry_run and confirm are both given; expected one of them")
	}
	return r, nil
}

func (s *Server) getConfig(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	f := &s.gateway.Config().File
	path, err := filepath.Abs(f.Name)
	if err != nil {
		return err // the working directory is gone
	}
	answer(w, http.StatusOK, Config{f.Name, path, f.Hash(), string(f.Text)})
	return nil
}

// reload answers with 422 if the file has mistakes or changes that need a restart.
func (s *Server) reload(w http.ResponseWriter, _ *http.Request, parameters map[string]string) error {
	request, err := reloadRequest(parameters)
	if err != nil {
		return err
	}
	return reloaded(w)(s.gateway.Reload(request))
}

func (s *Server) confirmReload(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	return reloaded(w)(s.gateway.Confirm())
}

func (s *Server) revertReload(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	return reloaded(w)(s.gateway.Revert())
}

// reloaded answers with what a reload has changed, or returns why nothing has changed.
func reloaded(w http.ResponseWriter) func(*Reloaded, error) error {
	return func(r *Reloaded, err error) error {
		if err != nil {
			return refusedReload(err)
		}
		answer(w, http.StatusOK, r)
		return nil
	}
}

func refusedReload(err error) error {
	var mistakes *config.Error
	var conflict Conflict
	switch {
	case errors.As(err, &mistakes):
		return failed(http.StatusUnprocessableEntity, "the configuration was not reloaded; the old one stays in force:\n%w", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return failed(http.StatusConflict, "the configuration was not reloaded; the old one stays in force: %w", err)
	case errors.As(err, &conflict):
		return failed(http.StatusConflict, "%w", err)
	}
	return err
}

// Running reads the configuration in force.
func (c *Client) Running(ctx context.Context) (*Config, error) {
	answer := &Config{}
	return answer, c.read(ctx, http.MethodGet, ConfigPath, nil, answer)
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
	path := reloadPath
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answer := &Reloaded{}
	return answer, c.read(ctx, http.MethodPost, path, nil, answer)
}

// Confirm keeps the configuration of a reload that waits for it.
func (c *Client) Confirm(ctx context.Context) (*Reloaded, error) {
	answer := &Reloaded{}
	return answer, c.read(ctx, http.MethodPost, confirmPath, nil, answer)
}

// Revert goes back to the configuration before a reload that waits to be confirmed.
func (c *Client) Revert(ctx context.Context) (*Reloaded, error) {
	answer := &Reloaded{}
	return answer, c.read(ctx, http.MethodPost, revertPath, nil, answer)
}
