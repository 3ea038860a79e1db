// Package telemetry is the catalogue of the gateway's metrics. Each counter, gauge and histogram is declared once, with what an operator
// needs to read it and its place in the accounting identity. The report, the log and the checks of that identity use the declarations. The
// package is pure and imports no other package of the project.
package telemetry

import (
	"math/bits"
)

// Metric describes one counter, gauge or histogram. Its values are numbers from 0 to 2^64 - 1.
type Metric struct {
	Name  string // snake case, without the prefix cnpgate_; ends in _total if and only if it is a Counter
	Kind  Kind
	Unit  Unit
	Scope Scope
	// Label is the name of the label that separates a metric's values within one scope, such as "reason"; "" for a metric with one value.
	// An enumeration has the label's values, such as counters.Suppression.
	Label string
	Side  Side
	Help  string // one sentence
	// MLX5, SONiC and OpenConfig are the names of the corresponding counter in the mlx5 driver, in SONiC and in OpenConfig's models
	// (openconfig-interfaces, openconfig-if-ethernet, openconfig-qos); "" if there is none.
	MLX5, SONiC, OpenConfig string
}

// Kind is how a metric changes.
type Kind uint8

const (
	Counter Kind = iota // never falls while the gateway runs
	Gauge               // rises and falls
	Sizes               // a Histogram of values
)

// Unit is what a metric counts. If it isn't empty, it is a word of the metric's name.
type Unit string

// Bytes is a base unit of Prometheus; the others are counts. BitsPerSecond is only for line rates.
const (
	Bytes         Unit = "bytes" // of frames, without FCS
	Packets       Unit = "packets"
	Flows         Unit = "flows"
	Notifications Unit = "notifications"
	BitsPerSecond Unit = "bps"
	Nanoseconds   Unit = "nanoseconds"
	Percent       Unit = "percent"
	Events        Unit = "" // other events
)

// Scope is the entity for which a metric has a value.
type Scope uint8

const (
	Gateway Scope = iota // one value for all workers together
	Port                 // one value for each port
	Device               // one value for each port, counted by its device: no worker saw these frames
	Queue                // one value for each traffic class of a port's queue; the report shows that of the class with the largest
)

// Labels are the names of all labels of a metric, in order.
func (m *Metric) Labels() []string {
	labels := [...][]string{Gateway: {}, Port: {"port"}, Device: {"port"}, Queue: {"port", "class"}}[m.Scope]
	if m.Label != "" {
		labels = append(labels, m.Label)
	}
	return labels
}

// Side is a metric's place in the accounting identity: the factor of its value in the sum. Over all ports and label values, the sum is
// always 0:
//
//	received = forwarded + dropped by reason + consumed + still queued
type Side int8

const (
	None Side = 0  // not part of the identity
	In   Side = 1  // received frames
	Out  Side = -1 // frames that have ended in one way, or are queued
)

// All are the metrics of the catalogue, in the order of their declaration.
func All() []*Metric { return all }

var all []*Metric

// declare adds a metric to the catalogue.
func declare(m Metric) *Metric {
	all = append(all, &m)
	return &m
}

// Buckets is the number of buckets in a histogram below the last one, which has no upper bound.
const Buckets = 24

// Histogram counts values by size. Bucket i holds values above Bound(i-1) and up to Bound(i); the bounds are powers of two.
type Histogram struct {
	Count [Buckets + 1]uint64
	Sum   uint64 // of all values, in the metric's unit
}

// Exponent is the exponent of a metric's first bound, a power of two: 128 ns, so that the last bound is 1.07 s, or 1 KiB, so that it is 8
// GiB.
func (m *Metric) Exponent() uint {
	if m.Unit == Nanoseconds {
		return 7
	}
	return 10
}

// Bound is the upper bound of a metric's bucket, in its unit. The bucket includes it. The last bucket has none.
func (m *Metric) Bound(bucket int) uint64 { return 1 << (m.Exponent() + uint(bucket)) }

// Bucket is the bucket of a value in the metric's unit. exponent is that of the first bound.
func Bucket(exponent uint, value uint64) int {
	if value > 0 {
		value-- // a bound belongs to the bucket below it
	}
	return min(bits.Len64(value>>exponent), Buckets)
}

// Total is the number of values.
func (h *Histogram) Total() (n uint64) {
	for _, count := range h.Count {
		n += count
	}
	return n
}
