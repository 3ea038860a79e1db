package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// layout is common to both sides of a comparison: two devices with their captures, and buffers of one size.
type layout struct {
	name     string
	captures []string // of the fabric port and the WAN port
	devices  []string // as EAL's --vdev takes them
	frames   int      // of both captures
	kept     int      // of these, in the program's buffers
	preload  string   // library that the programs need for the devices, "" for none
	flows    int
	length   int // bytes of a frame
	room     int // bytes of data in a buffer
	longest  int // frame with FCS that the devices allow testpmd to ask for; 0: 9000
	queues   int // of each port
	qpMap    string
}

// both makes a layout in which each port receives half of the flows, over and over.
func (b *bench) both(name string, t traffic, queues int) (*layout, error) {
	l := &layout{name: name, flows: t.flows, queues: queues, length: len(t.frame())}
	half := t.flows / 2
	for port := range 2 {
		t.flows, t.first = half, port*half
		if err := b.capture(l, t); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// oneWay makes a layout in which the fabric port alone receives, over and over.
func (b *bench) oneWay(name string, t traffic) (*layout, error) {
	l := &layout{name: name, flows: t.flows, queues: 1, length: len(t.frame()), qpMap: t.pairs()}
	err := b.capture(l, t)
	l.devices = append(l.devices, "net_null1,no-rx=1")
	return l, err
}

// answered makes a layout in which the fabric port receives the flows, and the WAN port their receivers' CNPs, as many.
func (b *bench) answered(name string, t traffic) (*layout, error) {
	l := &layout{name: name, flows: t.flows, queues: 1, length: len(t.frame()), qpMap: t.pairs()}
	if err := b.capture(l, t); err != nil {
		return nil, err
	}
	t.cnps = true
	return l, b.capture(l, t)
}

// nothing is a layout of two devices that generate empty frames and discard frames for transmission.
func nothing() *layout {
	return &layout{name: "null", devices: []string{"net_null0", "net_null1"}, room: roomOf(0), queues: 1}
}

// capture adds a port that receives t; it reuses an existing capture.
func (b *bench) capture(l *layout, t traffic) error {
	path := filepath.Join(b.dir, fmt.Sprintf("%d-%d-%d-%v-%v-%v.pcap", t.flows, t.first, t.payload, t.v6, t.cnps, t.imix))
	if _, err := os.Stat(path); err != nil {
		if err := t.write(path); err != nil {
			return err
		}
	}
	l.receive(path, t.flows)
	l.room = max(l.room, roomOf(l.length))
	return nil
}

// mixed makes a layout in which each port receives its part of a mix, over and over.
func (b *bench) mixed(name string) (*layout, error) {
	m, err := newMix()
	if err != nil {
		return nil, err
	}
	l := &layout{name: name, flows: m.flows, queues: 1}
	for port, frames := range m.frames {
		path := filepath.Join(b.dir, fmt.Sprintf("%s-%d.pcap", name, port))
		if err := writeCapture(path, slices.Values(frames)); err != nil {
			return nil, err
		}
		l.receive(path, len(frames))
		for _, frame := range frames {
			l.room = max(l.room, roomOf(len(frame)))
		}
	}
	return l, nil
}

// receive adds a port that receives a capture of some frames, over and over.
func (l *layout) receive(path string, frames int) {
	l.captures = append(l.captures, path)
	device := fmt.Sprintf("net_pcap%d", len(l.devices))
	for range l.queues {
		device += ",rx_pcap=" + path
	}
	l.devices = append(l.devices, device+",infinite_rx=1")
	l.frames += frames * l.queues
	l.kept = l.frames
}

// roomOf is the data room of a buffer for frames of a length: as large as for an MTU of 1500, or whatever a longer frame needs.
func roomOf(length int) int { return max(2048, (length+frameHead+63)&^63) }

// smallRoom is the least data room of a buffer: for the 64-byte class.
const smallRoom = 128

// frameHead is the length of an Ethernet header with two VLAN tags, which a buffer needs besides a port's MTU.
const frameHead = 14 + 2*4

// spareMbufs is the number of mbufs for forwarding: bursts and caches.
const spareMbufs = 8192

func (l *layout) mbufs() int { return l.kept + spareMbufs }

// testpmdMemory is the memory that testpmd needs without hugepages, MiB. Its pools let no buffer cross a page.
func (l *layout) testpmdMemory() int {
	each := (64 + 128 + headroom + l.room + 4095) &^ 4095
	return 64 + l.mbufs()*each>>20
}

// remove deletes the captures, which are large.
func (l *layout) remove() {
	for _, path := range l.captures {
		_ = os.Remove(path)
	}
}
