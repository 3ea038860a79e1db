//go:build secondopinion && long

package wireshark_test

// eachCapture: tshark dissects every capture again without the dissector.
const eachCapture = 1
