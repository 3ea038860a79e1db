package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/endpoint/runner"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/telemetry"
)

// run is the result of a run. Each capture has the frames received by one interface: fabric.pcap and wan.pcap by the gateway's, dc0.pcap by
// the sender's, wan0.pcap by the receiver's. Sent frames bypass the queueing discipline, and so tcpdump doesn't see them.
type run struct {
	name          string // off, or the format of the notifications
	start         int64  // when the sender's first frame was captured, ns since 1970
	gateway       report.Report
	fabric, wan   *report.Port
	endpoint      runner.Report // the sender's
	data, answers *stream       // from the sender, from the receiver
	notifications []notification
	leaked        int // frames of the gateway's own on the WAN side
}

// readRuns reads the run without notifications, and one with each format.
func readRuns(dir string) (runs []*run, err error) {
	for _, name := range append([]string{off}, formats...) {
		r, err := readRun(name, filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func readRun(name, dir string) (*run, error) {
	r := &run{name: name}
	for file, to := range map[string]any{"report.json": &r.gateway, "send.json": &r.endpoint} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, to); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
		}
	}
	if len(r.gateway.Ports) != 2 {
		return nil, fmt.Errorf("%s: %d ports, want the fabric port and the WAN port", filepath.Join(dir, "report.json"), len(r.gateway.Ports))
	}
	r.fabric, r.wan = &r.gateway.Ports[0], &r.gateway.Ports[1]
	at := map[string]capture{} // by the interface that received the frames
	for _, side := range []string{"fabric", "wan0", "wan", "dc0"} {
		c, err := readCapture(filepath.Join(dir, side+".pcap"))
		if err != nil {
			return nil, err
		}
		at[side] = c
	}
	if len(at["fabric"].sender) == 0 {
		return nil, fmt.Errorf("%s holds no frame of the sender", filepath.Join(dir, "fabric.pcap"))
	}
	r.start = at["fabric"].sender[0].at
	r.data = newStream(at["fabric"].sender, at["wan0"].sender, r.start)
	r.answers = newStream(at["wan"].receiver, at["dc0"].receiver, r.start)
	for _, f := range at["dc0"].gateway {
		r.notifications = append(r.notifications, readNotification(f))
	}
	r.leaked = len(at["wan0"].gateway)
	return r, nil
}

// dropped is the number of frames that the WAN port's queue dropped.
func (r *run) dropped() int { return int(r.wan.Counters.Sum(telemetry.DroppedPackets)) }

// depth is the WAN queue at a time of the timeline, counted from the run's first frame.
type depth struct {
	at    time.Duration
	bytes uint64
}

// depths returns the WAN queue's depth over time.
func (r *run) depths() (all []depth) {
	began := time.Duration(r.gateway.BeganMS)*time.Millisecond - time.Duration(r.start)
	for _, d := range r.gateway.Timeline {
		if d.Port == r.wan.Name {
			all = append(all, depth{began + time.Duration(d.MS)*time.Millisecond, d.DepthBytes})
		}
	}
	return all
}

// peak is the greatest depth of the WAN queue between two times, in bytes.
func (r *run) peak(from, to time.Duration) (most uint64) {
	for _, d := range r.depths() {
		if d.at >= from && d.at < to {
			most = max(most, d.bytes)
		}
	}
	return most
}

// notified is the number of notifications captured between two times.
func (r *run) notified(from, to time.Duration) (n int) {
	for i := range r.notifications {
		if at := time.Duration(r.notifications[i].at - r.start); at >= from && at < to {
			n++
		}
	}
	return n
}

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
	case p.Src == gateway6, p.Kind == packet.RoCEv2 && p.Opcode == packet.CNP: // a standard CNP has the receiver's address, and the receiver sends none
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
