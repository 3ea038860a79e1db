package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultSocket is where examples and packages have the gateway listen.
const DefaultSocket = "/run/cnpgate/cnpgate.sock"

const (
	connectTime = 2 * time.Second
	headerTime  = 15 * time.Second // longer than the server waits for a worker
)

// Client asks the gateway that listens at a Unix socket.
type Client struct {
	socket string
	http   http.Client
}

// NewClient makes a client; it connects when it asks.
func NewClient(socket string) *Client {
	c := &Client{socket: socket}
	c.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: connectTime}).DialContext(ctx, "unix", socket)
		},
		ResponseHeaderTimeout: headerTime, DisableKeepAlives: true,
	}
	return c
}

// FlowsJSON is the answer to GET /v1/flows as it comes, to be read to its end, where an error means that it isn't whole.
func (c *Client) FlowsJSON(ctx context.Context) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cnpgate"+flowsPath, nil)
	if err != nil {
		return nil, err
	}
	a, err := c.http.Do(r)
	if err != nil {
		return nil, c.explain(err)
	}
	if a.StatusCode == http.StatusOK {
		return a.Body, nil
	}
	defer a.Body.Close()
	var body errorBody
	if err := json.NewDecoder(io.LimitReader(a.Body, 1<<16)).Decode(&body); err != nil || body.Error == "" {
		return nil, fmt.Errorf("the gateway at %s answers with %s, not as the API does; expected a gateway of this version", c.socket, a.Status)
	}
	return nil, fmt.Errorf("the gateway at %s: %s", c.socket, body.Error)
}

// Flows reads all flows.
func (c *Client) Flows(ctx context.Context) ([]Flow, error) {
	body, err := c.FlowsJSON(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var answer struct {
		Flows []Flow `json:"flows"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("the answer of the gateway at %s: %w; try again", c.socket, err)
	}
	return answer.Flows, nil
}

// explain says what a failure to connect means, and what to do.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no socket at %s: is the gateway running, and is its management.listen unix:%s? Expected that, or --socket or --config with the socket it has",
			c.socket, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to connect to %s%s; expected root, the owner, or a member of the socket's group", c.socket, describe(c.socket))
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("nobody answers at %s: the gateway that made it is gone, or it is no gateway's; start one: cnpgate run", c.socket)
	}
	return fmt.Errorf("the gateway at %s: %w", c.socket, err)
}

// describe is the mode and owner of a file, as far as they can be seen.
func describe(path string) string {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return ""
	}
	return fmt.Sprintf(" (mode %04o, user %d, group %d; you are user %d)", s.Mode&0o7777, s.Uid, s.Gid, os.Getuid())
}
