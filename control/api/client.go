package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultSocket is the gateway's socket in the examples and packages.
const DefaultSocket = "/run/cnpgate/cnpgate.sock"

const (
	connectTime = 2 * time.Second
	headerTime  = 5 * time.Minute // a busy gateway needs one to sort a million flows
)

// Client sends requests to the gateway that listens at a Unix socket.
type Client struct {
	socket string
	http   http.Client
}

// NewClient makes a client; each request connects.
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

// JSON returns the unchanged answer to GET of a resource. The caller reads it to its end; an error there means that it is incomplete.
func (c *Client) JSON(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.ask(ctx, http.MethodGet, path, nil)
}

// ask makes a request, with a body as JSON unless that is nil.
func (c *Client) ask(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://cnpgate"+path, content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", jsonType)
	a, err := c.http.Do(r)
	if err != nil {
		return nil, c.explain(err)
	}
	if a.StatusCode == http.StatusOK || a.StatusCode == http.StatusCreated || a.StatusCode == http.StatusServiceUnavailable && path == HealthPath {
		return a.Body, nil
	}
	defer a.Body.Close()
	var refusal errorBody
	if err := json.NewDecoder(io.LimitReader(a.Body, 1<<16)).Decode(&refusal); err != nil || refusal.Error == "" {
		return nil, fmt.Errorf("the gateway at %s answers with %s, which is not an answer of the API; expected a gateway of this version", c.socket, a.Status)
	}
	return nil, fmt.Errorf("the gateway at %s: %s", c.socket, refusal.Error)
}

// Path is a path with a query.
func Path(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Get reads the answer to GET of a path as an A, the type that the operation of this path answers with.
func Get[A any](ctx context.Context, c *Client, path string) (*A, error) {
	return Do[A](ctx, c, http.MethodGet, path, nil)
}

// Do makes a request, with a body as JSON unless that is nil, and reads the answer as an A. After an error, the answer is empty or a part.
func Do[A any](ctx context.Context, c *Client, method, path string, body any) (*A, error) {
	answer := new(A)
	text, err := c.ask(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer text.Close()
	if err := json.NewDecoder(text).Decode(answer); err != nil {
		return answer, fmt.Errorf("the answer of the gateway at %s: %w; try again", c.socket, err)
	}
	return answer, nil
}

// Stream reads the lines of an answer, each an L, as the gateway writes them. It calls begun once the gateway has begun, then each for each line. It returns
// when the context or the gateway ends, or with the error of begun or each.
func Stream[L any](ctx context.Context, c *Client, path string, begun func() error, each func(*L) error) error {
	body, err := c.JSON(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := begun(); err != nil {
		return err
	}
	for lines := json.NewDecoder(body); ; {
		var line L
		switch err := lines.Decode(&line); {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("the gateway at %s: %w; what came before that is complete", c.socket, err)
		}
		if err := each(&line); err != nil {
			return err
		}
	}
}

// explain turns a failure to connect into an error that says what it means and what to do.
func (c *Client) explain(err error) error {
	file, statErr := os.Stat(c.socket)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (strings.Contains(c.socket, "://") || strings.HasPrefix(c.socket, "tcp:")):
		return fmt.Errorf("no socket at %s: the gateway's API is at a Unix socket only; expected its path", c.socket)
	case statErr == nil && file.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket; expected that of management.listen", c.socket)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no socket at %s: the gateway isn't running, or its management.listen isn't unix:%s; start it, or give its socket with --socket or --config",
			c.socket, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to connect to %s%s; expected root, the owner, or a member of the socket's group", c.socket, describe(c.socket))
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: its gateway has ended; start a gateway: cnpgate run", c.socket)
	}
	return fmt.Errorf("the gateway at %s: %w", c.socket, err)
}

// describe is the mode and owner of a file, if this user can see them.
func describe(path string) string {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return ""
	}
	return fmt.Sprintf(" (mode %04o, user %d, group %d; you are user %d)", s.Mode&0o7777, s.Uid, s.Gid, os.Getuid())
}
