package replay

import (
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// outputs writes the frames that leave the gateway to two captures, with the time of departure.
type outputs struct {
	forwarded, emitted *pcapgo.Writer // nil if not wanted
	first              time.Time
	err                error
}

func newOutputs(o Options, first time.Time) (*outputs, error) {
	out := &outputs{first: first}
	var err error
	if out.forwarded, err = writer(o.Forwarded); err != nil {
		return nil, fmt.Errorf("--forwarded: %w", err)
	}
	if out.emitted, err = writer(o.Emitted); err != nil {
		return nil, fmt.Errorf("--emitted: %w", err)
	}
	return out, nil
}

func writer(w io.Writer) (*pcapgo.Writer, error) {
	if w == nil {
		return nil, nil
	}
	p := pcapgo.NewWriterNanos(w)
	return p, p.WriteFileHeader(capturefile.MaxFrame, layers.LinkTypeEthernet)
}

// sent takes a frame that left; one that the worker built itself is a notification.
func (o *outputs) sent(s inmem.Sent) {
	w := o.forwarded
	if s.Built {
		w = o.emitted
	}
	if w == nil || o.err != nil {
		return
	}
	o.err = w.WritePacket(gopacket.CaptureInfo{
		Timestamp: o.first.Add(time.Duration(s.Now - epoch)), CaptureLength: len(s.Octets), Length: int(s.Length),
	}, s.Octets)
}
