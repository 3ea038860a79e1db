package report

import (
	"strconv"
	"time"
)

// Rate is a rate in bit/s for people: three digits and a decimal unit.
func Rate(bps uint64) string { return scaled(bps, "bps", "kbps", "Mbps", "Gbps", "Tbps") }

// Packets is a rate in packets a second for people.
func Packets(pps uint64) string { return scaled(pps, "pps", "kpps", "Mpps", "Gpps") }

// Size is a number of bytes for people.
func Size(bytes uint64) string { return scaled(bytes, "B", "KB", "MB", "GB", "TB") }

// scaled is a number with three digits, in the largest of some decimal units that leaves a whole part.
func scaled(v uint64, units ...string) string {
	value := float64(v)
	for value >= 999.5 && len(units) > 1 {
		value, units = value/1000, units[1:]
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + units[0]
}

// Ago is a time in ns with three digits, for people.
func Ago(ns int64) time.Duration {
	d, unit := time.Duration(max(ns, 0)), time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
