// Package congestion decides: at which depth an egress queue is congested and how badly, which sender may be told, in which
// format, and what it is asked to do. It is pure: depths, capacities, rates and round-trip times come from the caller, answers
// are small values. It builds no packet, keeps no clock and starts nothing, so the worker, the replay and the tests get the
// same answers in real and in virtual time.
package congestion
