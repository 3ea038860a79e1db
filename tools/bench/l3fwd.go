package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// startL3fwd starts DPDK's l3fwd with exact match (rte_hash) on the five-tuple, and a rule for each flow. It rewrites the MAC addresses and
// decrements the TTL, and looks up no QP. Its program ends if a frame misses the table.
func startL3fwd(b *bench, l *layout, t traffic) (forwarder, error) {
	program, err := found(filepath.Join(b.programs, "l3fwd"), "the sources in Debian's package dpdk-doc")
	if err != nil {
		return nil, err
	}
	rules, other := filepath.Join(b.dir, "l3fwd-ipv4.cfg"), filepath.Join(b.dir, "l3fwd-ipv6.cfg")
	if err := os.WriteFile(rules, l3fwdRules(t.tuples()), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(other, []byte("R2001:db8::2 2001:db8::1 9 9 17 1\n"), 0o600); err != nil { // without rules for IPv6 it ignores those for IPv4
		return nil, err
	}
	args := append(append(l.environment(), program), b.eal(l3fwdMemory)...)
	args = append(args, "--lcores=0@"+number10(b.core))
	for _, d := range l.devices {
		args = append(args, "--vdev", d)
	}
	args = append(args, "--", "-p", "0x3", "-E", "--parse-ptype", "--config", "(0,0,0),(1,0,0)", "--rule_ipv4", rules, "--rule_ipv6", other)
	return startChild("l3fwd", args...)
}

// l3fwdMemory is the memory that l3fwd needs without hugepages, MiB: its tables are for 1 Mi flows of either IP version.
const l3fwdMemory = 512

// l3fwdRules are the flows in l3fwd's syntax: destination, source, destination port, source port, protocol, outgoing port.
func l3fwdRules(flows []tuple) []byte {
	var text bytes.Buffer
	for _, f := range flows {
		fmt.Fprintf(&text, "R%s %s %d %d 17 %d\n", f.destination, f.source, tupleDestination, tupleSource, f.out)
	}
	return text.Bytes()
}
