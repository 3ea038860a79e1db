package dataplane

import (
	"strconv"
	"sync/atomic"

	"github.com/cnpgate/cnpgate/dataplane/account"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/telemetry"
)

// FlowControlStats has the flow control counts of a port's link.
type FlowControlStats struct {
	PFCReceived, PFCSent [packet.PFCClasses]uint64 // by priority
	PauseReceived        uint64
	Unsent               [unsentReasons]uint64
	Expired              [packet.PFCClasses]uint64  // by priority
	Detected, Restored   [account.MaxClasses]uint64 // by class
}

func (l *link) stats() (s FlowControlStats) {
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

func (s *FlowControlStats) addTo(v telemetry.Values) {
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
