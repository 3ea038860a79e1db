package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/control/config"
)

// LogLevel is the answer to GET and PUT /v1/log-level.
type LogLevel struct {
	LogLevel   string `json:"log_level" doc:"The lowest level that is logged."`
	Configured string `json:"configured" doc:"management.log_level of the configuration, which a reload restores."`
}

// logLevelRequest is the body of PUT /v1/log-level.
type logLevelRequest struct {
	LogLevel string `json:"log_level" enum:"debug,info,warn,error"`
}

func (s *Server) getLogLevel(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	answer(w, http.StatusOK, LogLevel{s.gateway.LogLevel(), s.gateway.Config().Management.LogLevel})
	return nil
}

func (s *Server) setLogLevel(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	expected := `one JSON object, such as {"log_level":"debug"}`
	values, err := readBody(w, r, expected, "log_level")
	if err != nil {
		return err
	}
	level, given := values["log_level"]
	if !given || !slices.Contains(config.LogLevels, level) {
		return failed(http.StatusBadRequest, "log_level is %.50q; expected %s", level, strings.Join(config.LogLevels, ", "))
	}
	s.gateway.SetLogLevel(level)
	return s.getLogLevel(w, r, parameters)
}

// LogLevel reads the lowest level that is logged.
func (c *Client) LogLevel(ctx context.Context) (*LogLevel, error) {
	answer := &LogLevel{}
	return answer, c.read(ctx, http.MethodGet, logLevelPath, nil, answer)
}

// SetLogLevel changes it.
func (c *Client) SetLogLevel(ctx context.Context, level string) (*LogLevel, error) {
	answer := &LogLevel{}
	return answer, c.read(ctx, http.MethodPut, logLevelPath, logLevelRequest{level}, answer)
}
