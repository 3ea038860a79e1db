package capturefile

import (
	"encoding/binary"
	"fmt"

	"github.com/gopacket/gopacket/layers"
)

// mostPlaces bounds the places of capture; further ones count as the last of these.
const mostPlaces = 256

// place is where frames were captured: a file of several in one, a section and an interface of pcapng, or an interface by Linux's index.
type place struct {
	file, section int
	on, index     uint32
}

// places are numbered in the order of their first frames.
type places struct {
	numbers map[place]int
	names   []string
	latest  place
	number  int
}

// of is the number of a place. The first frame of it comes from a source.
func (p *places) of(at place, from source) int {
	if at == p.latest && len(p.names) > 0 {
		return p.number
	}
	p.latest = at
	n, known := p.numbers[at]
	switch {
	case known:
	case len(p.names) == mostPlaces:
		n = mostPlaces - 1
	default:
		if p.numbers == nil {
			p.numbers = map[place]int{}
		}
		n = len(p.names)
		p.numbers[at] = n
		p.names = append(p.names, at.name(from))
	}
	p.number = n
	return n
}

// name is such as "eth0", "interface 1" or "file 2, eth0".
func (p place) name(from source) string {
	text := ""
	if ng, ok := from.(*pcapng); ok {
		text = fmt.Sprintf("interface %d", p.on)
		if name := ng.interfaces[p.on].name; name != "" {
			text = name
		}
	}
	if p.index != 0 {
		text = fmt.Sprintf("interface with index %d", p.index)
	}
	if n := p.file + max(p.section, 1); n > 1 || text == "" {
		file := fmt.Sprintf("file %d", n)
		if text != "" {
			file += ", "
		}
		text = file + text
	}
	return text
}

// indexOf is the index of the interface in Linux's cooked header, version 2; 0 if there is none.
func indexOf(b []byte, link layers.LinkType) uint32 {
	if link != linkSLL2 || len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint32(b[4:])
}

// Places are the names of the places where the frames read so far were captured.
func (c *Reader) Places() []string { return c.places.names }
