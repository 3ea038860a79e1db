package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// captured is one frame of a capture file.
type captured struct {
	at   int64 // nanoseconds since 1970
	data []byte
}

func (c *captured) parse() (p packet.Parsed) {
	packet.Parse(c.data, uint32(len(c.data)), &p)
	return p
}

// capture holds the frames of a capture file by sender, in order.
type capture struct {
	sender, receiver, gateway []captured
}

// readCapture reads a capture file of Ethernet frames. It refuses truncated frames, and frames from any other sender.
func readCapture(name string) (c capture, err error) {
	f, err := os.Open(name)
	if err != nil {
		return c, err
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	for n := 1; ; n++ {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("%s, frame %d: %w", name, n, err)
		}
		if info.CaptureLength < info.Length {
			return c, fmt.Errorf("%s, frame %d: %d of %d bytes captured, want all", name, n, info.CaptureLength, info.Length)
		}
		if err := c.add(captured{info.Timestamp.UnixNano(), data}); err != nil {
			return c, fmt.Errorf("%s, frame %d: %w", name, n, err)
		}
	}
}

func (c *capture) add(f captured) error {
	switch p := f.parse(); {
	case p.Src == gateway6:
		c.gateway = append(c.gateway, f)
	case p.Kind == packet.RoCEv2 && p.Src == sender:
		c.sender = append(c.sender, f)
	case p.Kind == packet.RoCEv2 && p.Src == receiver:
		c.receiver = append(c.receiver, f)
	default:
		return fmt.Errorf("it is neither an endpoint's nor the gateway's: %x", f.data[:min(64, len(f.data))])
	}
	return nil
}
