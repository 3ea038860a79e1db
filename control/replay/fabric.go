package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// CheckFabric returns an error for the first prefix from which no frame comes, because such a replay would show nothing. The error lists the frames'
// sources. A capture without frames is not an error. Afterwards the capture is at its start again.
func (c *Capture) CheckFabric(fabric []netip.Prefix) error {
	if c.Frames == 0 {
		return nil
	}
	from := newOrigins()
	missing, err := c.unmatched(fabric, from)
	if err == nil {
		err = c.rewind()
	}
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("%v: no frame of capture %s comes from there; expected a prefix with hosts of the data centre; the frames come from %v",
		missing[0], c.name, from)
}

// unmatched are the prefixes from which no frame comes. It reads no further than necessary, and adds the sources that it reads to from.
func (c *Capture) unmatched(fabric []netip.Prefix, from *origins) ([]netip.Prefix, error) {
	missing := slices.Clone(fabric)
	for len(missing) > 0 {
		frame, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, source := range senders(frame.Octets, frame.Length) {
			missing = slices.DeleteFunc(missing, func(p netip.Prefix) bool { return p.Contains(source) })
			from.add(source, 1)
		}
	}
	return missing, nil
}

const (
	shownOrigins = 8    // prefixes in an error
	keptOrigins  = 4096 // prefixes in memory
)

// origins counts frames by source: by hosts, or by prefixes if there are too many hosts.
type origins struct {
	frames       map[netip.Prefix]int
	bits4, bits6 int // length of the prefixes
}

func newOrigins() *origins { return &origins{frames: map[netip.Prefix]int{}, bits4: 32, bits6: 128} }

func (o *origins) add(host netip.Addr, frames int) {
	bits := o.bits6
	if host.Is4() {
		bits = o.bits4
	}
	o.frames[netip.PrefixFrom(host, bits).Masked()] += frames
	o.widen(keptOrigins)
}

// widen shortens prefixes, to usual lengths, until at most this many are left.
func (o *origins) widen(most int) {
	for len(o.frames) > most {
		o.bits4, o.bits6 = next(o.bits4, 24, 16, 8), next(o.bits6, 64, 48, 32, 16)
		longer := o.frames
		o.frames = map[netip.Prefix]int{}
		for p, frames := range longer {
			o.add(p.Addr(), frames)
		}
	}
}

// next is the first length below bits; 0, which matches everything, after the last.
func next(bits int, lengths ...int) int {
	for _, length := range lengths {
		if length < bits {
			return length
		}
	}
	return 0
}

// String lists them, most frames first.
func (o *origins) String() string {
	if len(o.frames) == 0 {
		return "no IP address at all"
	}
	o.widen(shownOrigins)
	prefixes := slices.SortedFunc(maps.Keys(o.frames), func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(o.frames[b], o.frames[a]), a.Addr().Compare(b.Addr()))
	})
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = fmt.Sprintf("%v (frames: %d)", p, o.frames[p])
	}
	return strings.Join(texts, ", ")
}
