package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/counters"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"pgregory.net/rapid"
)

// queueModel is what an egress queue must be: plain lists.
type queueModel struct {
	classes   [3][][]byte
	depth     [3]uint64
	watermark [3]uint64
	capacity  uint64
	frames    int
	full      [2]uint64 // dropped: octets, frames
}

func (m *queueModel) enter(class int, frame []byte) {
	switch {
	case m.depth[class]+uint64(len(frame)) > m.capacity:
		m.full[0]++
	case len(m.classes[class]) == m.frames:
		m.full[1]++
	default:
		m.classes[class] = append(m.classes[class], frame)
		m.depth[class] += uint64(len(frame))
		m.watermark[class] = max(m.watermark[class], m.depth[class])
	}
}

// leave takes the frame that must be first to go.
func (m *queueModel) leave() []byte {
	for class := range m.classes {
		if len(m.classes[class]) > 0 {
			f := m.classes[class][0]
			m.classes[class] = m.classes[class][1:]
			m.depth[class] -= uint64(len(f))
			return f
		}
	}
	return nil
}

// TestQueueModel: at all times depth, watermark, drops and what leaves are those of plain lists, one a class, the first one first,
// also while the device takes only some of what it is offered.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &queueModel{capacity: rapid.Uint64Range(200, 9000).Draw(t, "capacity"), frames: rapid.IntRange(1, 20).Draw(t, "frames")}
		r := testkit.New(t, testkit.Setup{Burst: 8, Rate: 1e9, Capacity: m.capacity, Frames: m.frames, Buffers: 256, Change: threeClasses})
		var received, next [][]byte
		number := uint32(0)
		step := func(t *rapid.T) {
			r.Plane.Worker(0).Step()
			for _, s := range r.Take(1) {
				if want := m.leave(); !bytes.Equal(s.Octets, want) {
					t.Fatalf("left:\n% x\nexpected:\n% x", s.Octets, want)
				}
			}
			received = next[:min(8, len(next))]
			next = next[len(received):]
			for _, f := range received {
				m.enter(int(f[15]>>2)%3, f)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"inject": func(t *rapid.T) {
				number++
				f := testkit.RoCE{Src: sender4, Dst: receiver4, DestQP: 7, DSCP: rapid.Uint8Range(0, 63).Draw(t, "DSCP"),
					Size: rapid.IntRange(62, 1500).Draw(t, "octets")}.Frame()
				binary.BigEndian.PutUint32(f, number)
				r.Inject(t, 0, f)
				next = append(next, f)
			},
			"step":  step,
			"time":  func(t *rapid.T) { r.Advance(rapid.Int64Range(0, 30_000).Draw(t, "ns")) },
			"limit": func(t *rapid.T) { r.Backends[0].Limit(1, rapid.IntRange(0, 8).Draw(t, "frames")) },
			"": func(t *rapid.T) {
				s := r.Plane.Port(1)
				for class := range m.classes {
					if s.Depth[class] != m.depth[class] || int(s.Frames[class]) != len(m.classes[class]) || s.Watermark[class] != m.watermark[class] {
						t.Fatalf("class %d: %d octets, %d frames, watermark %d; expected %d, %d, %d", class,
							s.Depth[class], s.Frames[class], s.Watermark[class], m.depth[class], len(m.classes[class]), m.watermark[class])
					}
				}
				if full := [2]uint64{s.Count[counters.DroppedQueueOctets], s.Count[counters.DroppedQueueFrames]}; full != m.full {
					t.Fatalf("dropped %v, expected %v", full, m.full)
				}
				r.Balance(t)
			},
		})
		r.Close(t)
	})
}

// threeClasses gives a DSCP its class by its remainder.
func threeClasses(c *dataplane.Config) {
	for i := range c.Ports {
		c.Ports[i].Classes = 3
		for dscp := range c.Ports[i].ClassOf {
			c.Ports[i].ClassOf[dscp] = uint8(dscp % 3)
		}
	}
}
