// Package congestion decides whether an egress queue is congested and how severely, which sender may be notified, in which format, and what
// to ask of it. It is pure: depths, capacities, rates and round-trip times come from the caller, and results are small values. It builds no
// packets and has no clock or goroutine, so the worker, the replay and the tests get the same results in real and in virtual time.
package congestion
