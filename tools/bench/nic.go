package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// These rows are of ports that cost a core what a NIC does: peer/nic.c. The memory of their frames decides where headers are.

// nicMost is the most memory that a layout's ports take.
const nicMost = 1 << 30

// nicMemory is the size of the frames' memory of both ports: several times as large as L3 for cold headers, or as L2 for those that are warm.
func nicMemory(cold bool) int {
	if cold {
		return min(8*cacheSize(3, 32<<20), nicMost)
	}
	return 4 * cacheSize(2, 1<<20)
}

// cacheSize is the size of a core's cache in bytes; usual if the machine doesn't say.
func cacheSize(level, usual int) int {
	text := firstLine(fmt.Sprintf("/sys/devices/system/cpu/cpu0/cache/index%d/size", level))
	kib, err := strconv.Atoi(strings.TrimSuffix(text, "K"))
	if err != nil {
		return usual
	}
	return kib << 10
}

// likeNIC makes a layout's devices such ports, with the same captures.
func (b *bench) likeNIC(l *layout, cold bool) {
	for port, path := range l.captures {
		l.devices[port] = fmt.Sprintf("net_ring%d,queues=%d,frames=%s,memory=%d", port, l.queues, path, nicMemory(cold)/len(l.captures)/l.queues)
	}
	l.kept, l.preload = 0, filepath.Join(b.programs, "nic.so")
}

// environment is the command that runs a program on the layout's devices, without the program; nil if it needs nothing.
func (l *layout) environment() []string {
	if l.preload == "" {
		return nil
	}
	return []string{"env", "LD_PRELOAD=" + l.preload}
}

// onNIC is the rows of one kind of traffic on such ports, with cold headers and with warm ones, which have no goals.
func onNIC(name, what string, make func(b *bench, name string) (*layout, error), wanted goals) (both []group) {
	for _, cold := range []bool{true, false} {
		suffix, goal := "_cold", wanted
		if !cold {
			suffix, goal = "_warm", goals{}
			for mode := range wanted {
				goal[mode] = 0
			}
		}
		g := forwardingOf(name+suffix, what, func(b *bench, name string) (*layout, error) {
			l, err := make(b, name)
			if err == nil {
				b.likeNIC(l, cold)
			}
			return l, err
		}, "", goal)
		g.hugepages = 0.5 + 2*float64(nicMemory(cold))/(1<<30) // a side each
		both = append(both, g)
	}
	return both
}
