package counters

import "github.com/cnpgate/cnpgate/telemetry"

// Reasons are a set of reasons for which workers drop frames, a bit for each Counter.
type Reasons uint64

// atWorker reports whether a counter is of drops by a worker, which has the frame then. The others are a device's, or those of the gateway's end.
func (n Counter) atWorker() bool {
	return Catalogue[n].Metric == telemetry.DroppedPackets && (n < DroppedShutdown || n > DroppedRefused)
}

// atEgress are the drops at the port by which the frame would have left.
const atEgress Reasons = 1<<DroppedQueueOctets | 1<<DroppedQueueFrames | 1<<DroppedPFCWatchdog | 1<<DroppedPacing

// Has reports whether a counter is one of the reasons.
func (r Reasons) Has(n Counter) bool { return r>>n&1 != 0 }

// AtEgress reports whether a frame is dropped at its egress port; the counter is that port's.
func (n Counter) AtEgress() bool { return atEgress.Has(n) }

// allReasons is the name of the set of all reasons.
const allReasons = "all"

// ReasonNames are the names of allReasons and of each reason for which a worker drops frames.
func ReasonNames() []string {
	names := []string{allReasons}
	for n := range Counters {
		if n.atWorker() {
			names = append(names, Catalogue[n].Value)
		}
	}
	return names
}

// ReasonsOf is the set with a name of ReasonNames; 0 of any other.
func ReasonsOf(name string) (set Reasons) {
	for n := range Counters {
		if n.atWorker() && (name == allReasons || name == Catalogue[n].Value) {
			set |= 1 << n
		}
	}
	return set
}
