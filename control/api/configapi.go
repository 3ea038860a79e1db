package api

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/cnpgate/cnpgate/control/config"
)

// Config is the answer to GET /v1/config.
type Config struct {
	File       string `json:"file" doc:"Name of the file."`
	Path       string `json:"path" doc:"Absolute path of the file."`
	ConfigHash string `json:"config_hash" doc:"SHA-256 of the text, hexadecimal."`
	Text       string `json:"text" doc:"YAML, as it was read."`
}

// Reloaded is the answer to POST /v1/reload.
type Reloaded struct {
	Changes    []string `json:"changes" doc:"Keys whose values have changed, such as ports[0].rate."`
	ConfigHash string   `json:"config_hash" doc:"SHA-256 of the configuration in force, hexadecimal."`
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
func (s *Server) reload(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	changes, err := s.gateway.Reload()
	var mistakes *config.Error
	switch {
	case errors.As(err, &mistakes):
		return failed(http.StatusUnprocessableEntity, "the configuration was not reloaded; the old one stays in force:\n%w", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return failed(http.StatusConflict, "the configuration was not reloaded; the old one stays in force: %w", err)
	case err != nil:
		return err
	}
	answer(w, http.StatusOK, Reloaded{append([]string{}, changes...), s.gateway.Config().File.Hash()})
	return nil
}

// Running reads the configuration in force.
func (c *Client) Running(ctx context.Context) (*Config, error) {
	answer := &Config{}
	return answer, c.read(ctx, http.MethodGet, ConfigPath, nil, answer)
}

// Reload makes the gateway read its configuration again.
func (c *Client) Reload(ctx context.Context) (*Reloaded, error) {
	answer := &Reloaded{}
	return answer, c.read(ctx, http.MethodPost, reloadPath, nil, answer)
}
