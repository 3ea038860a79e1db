package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/control/config"
)

// Modes is the answer to GET and PUT /v1/mode.
type Modes struct {
	Ports []PortMode `json:"ports" doc:"In the order of the configuration."`
}

// PortMode is the mode of a port: whether its queue's congestion is answered, or only observed.
type PortMode struct {
	Port       string `json:"port" doc:"Name of the port."`
	Mode       string `json:"mode" doc:"send or observe: the one in force."`
	Configured string `json:"configured" doc:"notifications.mode of the configuration, which a reload restores."`
}

// modeRequest is the body of PUT /v1/mode.
type modeRequest struct {
	Mode string `json:"mode" enum:"send,observe" doc:"The mode to set."`
	Port string `json:"port,omitempty" doc:"Only this port; all ports without it."`
}

func (s *Server) getMode(w http.ResponseWriter, _ *http.Request, _ map[string]string) error {
	answer(w, http.StatusOK, Modes{s.gateway.Modes()})
	return nil
}

func (s *Server) setMode(w http.ResponseWriter, r *http.Request, parameters map[string]string) error {
	values, err := readBody(w, r, `one JSON object, such as {"mode":"observe","port":"wan"}`, "mode", "port")
	if err != nil {
		return err
	}
	mode, port := values["mode"], values["port"]
	if !slices.Contains(config.Modes, mode) {
		return failed(http.StatusBadRequest, "mode is %.50q; expected %s", mode, config.Either(config.Modes))
	}
	if port != "" && !slices.Contains(s.ports, port) {
		return failed(http.StatusBadRequest, "port is %.50q; expected %s", port, strings.Join(s.ports, ", "))
	}
	if err := s.gateway.SetMode(port, mode == config.ModeObserve); err != nil {
		return failed(http.StatusConflict, "%w", err)
	}
	return s.getMode(w, r, parameters)
}

// Modes reads the ports' modes.
func (c *Client) Modes(ctx context.Context) (*Modes, error) {
	answer := &Modes{}
	return answer, c.read(ctx, http.MethodGet, modePath, nil, answer)
}

// SetMode changes the mode of a port, or of all for "".
func (c *Client) SetMode(ctx context.Context, port, mode string) (*Modes, error) {
	answer := &Modes{}
	return answer, c.read(ctx, http.MethodPut, modePath, modeRequest{mode, port}, answer)
}
