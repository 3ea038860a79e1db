//go:build secondopinion && !long

package wireshark_test

// eachCapture: tshark dissects one capture in so many again without the dissector, which takes a second each.
const eachCapture = 4
