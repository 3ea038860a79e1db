package replay

import (
	"errors"
	"io"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/health/dissect"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// settleOrder decides whether a clock was set back that may have been, or frames are out of the order of time, as those of several queues are: by the order in
// which fewer packets come before those that were sent before them. No queue is late by more than what is sorted.
func (f *file) settleOrder() error {
	if !f.order.Steps {
		return nil
	}
	stepped, err := f.overtaken()
	if err != nil {
		return err
	}
	f.order.Steps = false
	sorted, err := f.overtaken()
	f.order.Steps = stepped < sorted || stepped == sorted && f.order.Far()
	return err
}

// overtaken is how many packets come behind one with a higher PSN of the same flow, in the present order.
func (f *file) overtaken() (n int, err error) {
	if err := f.rewind(nil); err != nil {
		return 0, err
	}
	latest := map[connectionKey]uint32{}
	var reader dissect.Reader
	for {
		frame, err := f.reader.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) && !capturefile.Ends(err) {
				return 0, err
			}
			return n, nil
		}
		o := reader.Read(frame.Octets, frame.Length)
		if o.Reason != dissect.None || o.Parsed.Opcode == packet.CNP {
			continue
		}
		key := connectionKey{o.Parsed.Src, o.Parsed.Dst, o.Parsed.DestQP, 0}
		before, known := latest[key]
		if known && ahead(o.Parsed.PSN, before) < 0 {
			n++
		}
		if known || len(latest) < mostOvertaken {
			latest[key] = o.Parsed.PSN
		}
	}
}

// mostOvertaken bounds the flows that are compared.
const mostOvertaken = 1 << 16
