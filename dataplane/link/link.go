// Package link has the flow control of a port's link: it obeys PAUSE and PFC frames, with a watchdog, and sends PFC frames for lossless
// classes. Time comes from the caller, which drops the frames of classes that the watchdog empties.
package link

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/lossless"
	"github.com/cnpgate/cnpgate/telemetry"
)

// FlowControl makes the gateway obey PAUSE and PFC frames on a port's link, and send PFC frames there.
type FlowControl struct {
	Address  [6]byte                  // source MAC address of PFC frames
	Speed    uint64                   // of the link, bit/s: the unit of quanta depends on it
	Priority [account.MaxClasses]int8 // PFC priority of each class of the port's queue; -1: it has none, and only PAUSE stops it
	Lossless [account.MaxClasses]Lossless
	Watchdog lossless.Watchdog
}

// Lossless makes a class of the queue of the port's peer lossless: the frames for it arrive on this port.
type Lossless struct {
	On       bool
	Priority uint8 // of the PFC frames
	lossless.Thresholds
}

// Link is the state of flow control on a port's link. All workers read it, and the one that receives a PAUSE or PFC frame writes the pauses.
// The first worker sends PFC frames and runs the watchdog, so that each event has one frame, and no frame overtakes a later one.
type Link struct {
	*FlowControl
	classes int                              // of the port
	paused  [account.MaxClasses]atomic.Int64 // until when PFC pauses a class, ns
	halted  atomic.Int64                     // until when PAUSE pauses all, ns
	latest  atomic.Int64                     // no pause lasts longer, ns; workers read it first
	ignored atomic.Uint32                    // classes whose pauses the watchdog ignores
	emptied atomic.Uint32                    // classes whose frames it drops
	counts  linkCounts
	sender  pfcSender                          // the first worker's
	watches [account.MaxClasses]lossless.Watch // the first worker's, by class
}

// linkCounts counts rare events, each in its own atomic.
type linkCounts struct {
	pfcReceived, pfcSent [packet.PFCClasses]atomic.Uint64 // by priority
	pauseReceived        atomic.Uint64
	unsent               [unsentReasons]atomic.Uint64
	expired              [packet.PFCClasses]atomic.Uint64  // by priority
	detected, restored   [account.MaxClasses]atomic.Uint64 // by class
}

// New makes the link of a port with this number of classes; nil without flow control.
func New(f *FlowControl, classes int) *Link {
	if f == nil {
		return nil
	}
	return &Link{FlowControl: f, classes: classes}
}

// Validate returns an error if a worker can't use the flow control of a port with this number of classes; peerClasses and peer are those of
// its peer.
func (f *FlowControl) Validate(classes, peerClasses int, peer *egress.Queue) error {
	if f == nil {
		return nil
	}
	if f.Speed < 100_000 || f.Watchdog.Detection <= 0 {
		return fmt.Errorf("flow control at %d bit/s with a watchdog's detection of %d ns, expected at least 100000 and more than 0",
			f.Speed, f.Watchdog.Detection)
	}
	for class := range classes {
		if p := f.Priority[class]; p < -1 || p >= packet.PFCClasses {
			return fmt.Errorf("class %d has PFC priority %d, expected 0 to 7, or -1 for none", class, p)
		}
	}
	for class := range f.Lossless {
		l := &f.Lossless[class]
		if l.On && (class >= peerClasses || l.Priority >= packet.PFCClasses || l.XOff >= peer.Capacity || l.XOn >= l.XOff ||
			l.XOffFrames >= peer.Frames || l.XOnFrames >= l.XOffFrames || l.Refresh <= 0 || l.Refresh >= lossless.PauseTime(lossless.MaxQuanta, f.Speed)) {
			return fmt.Errorf("lossless class %d: %+v, expected XOn < XOff < capacity, in bytes and frames, and a refresh within the pause", class, *l)
		}
	}
	return nil
}

// Obey applies a PAUSE (IEEE 802.3 31B) or PFC frame (IEEE 802.1Q 36). A MAC control frame has no VLAN tag; frames with another opcode and
// truncated frames have no effect, and none has on a nil link.
func (l *Link) Obey(now int64, frame []byte, p *packet.Parsed) {
	b := frame[packet.EthernetLen:]
	if l == nil || p.Tags != 0 || len(b) < packet.PauseLen {
		return
	}
	switch opcode := binary.BigEndian.Uint16(b); {
	case opcode == packet.MACControlPause:
		l.counts.pauseReceived.Add(1)
		l.pause(&l.halted, now, packet.DecodePause(b).Time)
	case opcode == packet.MACControlPFC && len(b) >= packet.PFCLen:
		pfc := packet.DecodePFC(b)
		for priority, quanta := range pfc.Time {
			if pfc.Enabled>>priority&1 == 1 {
				l.counts.pfcReceived[priority].Add(1)
				l.pausePriority(priority, now, quanta)
			}
		}
	}
}

// pausePriority pauses the classes of a priority; a link has few, and PFC frames are rare.
func (l *Link) pausePriority(priority int, now int64, quanta uint16) {
	for class := range l.Priority {
		if int(l.Priority[class]) == priority {
			l.pause(&l.paused[class], now, quanta)
		}
	}
}

// pause sets the end of a pause; a pause of 0 quanta ends it.
func (l *Link) pause(until *atomic.Int64, now int64, quanta uint16) {
	end := now + lossless.PauseTime(quanta, l.Speed)
	until.Store(end)
	for old := l.latest.Load(); old < end && !l.latest.CompareAndSwap(old, end); old = l.latest.Load() {
	}
}

// pausedUntil returns the end of a class's pause, by PFC or PAUSE.
func (l *Link) pausedUntil(class int) int64 { return max(l.paused[class].Load(), l.halted.Load()) }

// Stats has the counts of a port's link.
type Stats struct {
	PFCReceived, PFCSent [packet.PFCClasses]uint64 // by priority
	PauseReceived        uint64
	Unsent               [unsentReasons]uint64
	Expired              [packet.PFCClasses]uint64  // by priority
	Detected, Restored   [account.MaxClasses]uint64 // by class
}

// Stats returns the counts; 0 of a nil link. Any goroutine may call it.
func (l *Link) Stats() (s Stats) {
	if l == nil {
		return s
	}
	c := &l.counts
	load(s.PFCReceived[:], c.pfcReceived[:])
	load(s.PFCSent[:], c.pfcSent[:])
	load(s.Unsent[:], c.unsent[:])
	load(s.Expired[:], c.expired[:])
	load(s.Detected[:], c.detected[:])
	load(s.Restored[:], c.restored[:])
	s.PauseReceived = c.pauseReceived.Load()
	return s
}

func load(to []uint64, from []atomic.Uint64) {
	for i := range to {
		to[i] = from[i].Load()
	}
}

// AddTo adds the counts to values.
func (s *Stats) AddTo(v telemetry.Values) {
	for priority := range packet.PFCClasses {
		label := strconv.Itoa(priority)
		v.Add(telemetry.PFCReceived, label, s.PFCReceived[priority])
		v.Add(telemetry.PFCSent, label, s.PFCSent[priority])
		v.Add(telemetry.PFCExpired, label, s.Expired[priority])
	}
	for reason, name := range unsentNames {
		v.Add(telemetry.PFCUnsent, name, s.Unsent[reason])
	}
	for class := range account.MaxClasses {
		label := strconv.Itoa(class)
		v.Add(telemetry.PFCStormsDetected, label, s.Detected[class])
		v.Add(telemetry.PFCStormsRestored, label, s.Restored[class])
	}
	v.Add(telemetry.PauseReceived, "", s.PauseReceived)
}
