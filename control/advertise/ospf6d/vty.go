package ospf6d

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

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
