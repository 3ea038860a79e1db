// Package lossless has the state of IEEE 802.1Qbb flow control on one link: when the other end must stop sending a class (Xoff), how much
// it still sends until then (Link), and when a pause that it requests has lasted too long (Watch). It is pure: time in nanoseconds and
// depths come from the caller, and every value belongs to one goroutine.
package lossless

import "math/bits"

// Quantum is the unit of pause times in bit times (IEEE 802.3 31B.2).
const Quantum = 512

// MaxQuanta is the longest pause that a frame can request (IEEE 802.3 31B.2); the gateway always requests it.
const MaxQuanta = 0xffff

// PauseTime is the duration in ns of a pause of the given quanta on a link of a speed in bit/s, rounded down.
func PauseTime(quanta uint16, speed uint64) int64 {
	return int64(uint64(quanta) * Quantum * second / speed)
}

const second = 1_000_000_000 // ns

// bytesIn is the number of bytes at a rate in bit/s in the given ns, rounded up.
func bytesIn(ns int64, rate uint64) uint64 {
	const perByte = 8 * second
	high, low := bits.Mul64(uint64(ns), rate)
	q, r := bits.Div64(high, low, perByte)
	if r != 0 {
		q++
	}
	return q
}
