// Package ospf6d learns the proxies of senders by OSPFv3 (draft-xiao-proxy 5.3), from the LSDB of FRR's ospf6d, which keeps and floods extended LSAs
// though it doesn't know them. The client asks for the LSDB as JSON, over the socket that vtysh uses. ospf6d can't originate such LSAs, so
// the gateway announces nothing by OSPFv3.
package ospf6d

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/proxy"
)

// The commands. The first one's answer has whole LSAs in hexadecimal, also of types that ospf6d doesn't know.
const (
	commandDump = "show ipv6 ospf6 database dump json"
	commandTree = "show ipv6 ospf6 spf tree json"
)

// Client learns proxies.
type Client struct {
	Socket   string        // path of ospf6d's vty socket
	Interval time.Duration // between two questions
	Own      netip.Addr    // this gateway's IPv6 address as a proxy; the zero Addr if it is none
	// Learned gets all senders that are known, in the order of their prefixes, whenever they have changed: from one goroutine, the caller of Run.
	Learned func([]proxy.Sender) error
	Accepts func(netip.Prefix) bool // whether a prefix may be learned
	Note    func(error)             // gets nil when ospf6d answers, and the reason when it doesn't
	Log     zerolog.Logger

	last    []proxy.Sender // what Learned got last
	ignored string         // the error that the log has, so that it doesn't repeat it
}

// Run asks until the context ends; then Learned gets no senders. While ospf6d doesn't answer, Learned gets none either: whether their proxies still
// exist is not known.
func (c *Client) Run(ctx context.Context) {
	defer c.learned(nil)
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		found, ignored, err := c.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		c.Note(err)
		c.report(ignored)
		c.learned(found)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask asks once.
func (c *Client) ask(ctx context.Context) (all []proxy.Sender, ignored, err error) {
	dumped, err := ask(ctx, c.Socket, commandDump)
	if err != nil {
		return nil, nil, err
	}
	tree, err := ask(ctx, c.Socket, commandTree)
	if err != nil {
		return nil, nil, err
	}
	return senders(dumped, tree, advertise.Best{Own: c.Own, Accepts: c.Accepts})
}

// report logs why an LSA is ignored, if that is another reason than before.
func (c *Client) report(ignored error) {
	text := ""
	if ignored != nil {
		text = ignored.Error()
	}
	if text != c.ignored && text != "" {
		c.Log.Warn().Err(ignored).Str("ospf6d", c.Socket).Msg("OSPFv3 ignores an LSA that may announce proxies.")
	}
	c.ignored = text
}

// learned passes on senders if they aren't those that were passed on last.
func (c *Client) learned(senders []proxy.Sender) {
	if slices.Equal(senders, c.last) {
		return
	}
	if err := c.Learned(senders); err != nil {
		c.Log.Error().Err(err).Msg("The proxies that OSPFv3 has learned are not used.")
		return
	}
	c.Log.Info().Int("prefixes", len(senders)).Msg("OSPFv3 has learned other proxies.")
	c.last = senders
}

const (
	answerTime = 10 * time.Second
	maxAnswer  = 64 << 20 // of an LSDB as JSON
	chunk      = 64 << 10
)

// endMark ends an answer; a byte with the status follows, 0 for success (FRRouting, lib/vty.c).
const endMark = "\x00\x00\x00"

// ask sends a command to the daemon whose vty socket is at a path, as vtysh does, and returns the answer.
func ask(ctx context.Context, path, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("ospf6d's vty socket: %w; start ospf6d, and let the gateway's user be in the group frrvty", err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := io.WriteString(c, command+"\x00"); err != nil {
		return nil, fmt.Errorf("ospf6d: %s: %w", command, err)
	}
	answer, status, err := readAnswer(c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ospf6d: %s: %w", command, err)
	case status != 0:
		return nil, fmt.Errorf("ospf6d refuses %q with status %d: %s; FRR 8.4 knows it", command, status, strings.TrimSpace(string(answer[:min(len(answer), 200)])))
	}
	return answer, nil
}

// readAnswer reads an answer of at most maxAnswer bytes, and its status.
func readAnswer(r io.Reader) (answer []byte, status byte, err error) {
	buffer := make([]byte, chunk)
	for len(answer) <= maxAnswer {
		n, err := r.Read(buffer)
		answer = append(answer, buffer[:n]...)
		if end := len(answer) - len(endMark) - 1; end >= 0 && bytes.HasPrefix(answer[end:], []byte(endMark)) {
			return answer[:end], answer[len(answer)-1], nil
		}
		if errors.Is(err, io.EOF) {
			return nil, 0, fmt.Errorf("the answer ends after %d bytes without its status", len(answer))
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
}
