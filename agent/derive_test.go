package agent

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/internal/rdma"
)

func ip(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func ips(all ...string) (out []netip.Addr) {
	for _, s := range all {
		out = append(out, ip(s))
	}
	return out
}

func rc(device, local, remote uint32) rdma.QP {
	return rdma.QP{Device: device, Port: 1, Local: local, Remote: remote, Transport: rdma.RC, State: 3}
}

func hint(source string, sourceQP uint32, destination string, destinationQP uint32) fleet.Hint {
	return fleet.Hint{Source: ip(source), Destination: ip(destination), SourceQP: sourceQP, DestinationQP: destinationQP}
}

func TestDerive(t *testing.T) {
	port := func(device uint32) Port { return Port{device, 1} }
	two := map[Port][]netip.Addr{port(0): ips("10.1.0.1", "2001:db8::1"), port(1): ips("10.1.0.2")}
	init := rc(0, 19, 30)
	init.State = 1
	ud := rc(0, 20, 30)
	ud.Transport = 4
	for _, c := range []struct {
		name string
		s    Snapshot
		want []fleet.Hint
		left Left
	}{
		{"nothing", Snapshot{}, nil, Left{}},
		{"RDMA-CM knows the destination",
			Snapshot{QPs: []rdma.QP{rc(0, 17, 30)}, CMIDs: []rdma.CMID{{Device: 0, QP: 17, Source: ip("10.1.0.1"), Destination: ip("10.2.0.9")}}, Addresses: two},
			[]fleet.Hint{hint("10.1.0.1", 17, "10.2.0.9", 30)}, Left{}},
		{"another device's RDMA-CM ID", // of a QP with the same number
			Snapshot{QPs: []rdma.QP{rc(0, 17, 30)}, CMIDs: []rdma.CMID{{Device: 1, QP: 17, Source: ip("10.1.0.2"), Destination: ip("10.2.0.9")}}, Addresses: two},
			[]fleet.Hint{hint("10.1.0.1", 17, "", 30), hint("2001:db8::1", 17, "", 30)}, Left{}},
		{"two devices, the same remote number",
			Snapshot{QPs: []rdma.QP{rc(0, 17, 30), rc(1, 17, 30)}, Addresses: two},
			[]fleet.Hint{hint("10.1.0.1", 17, "", 30), hint("2001:db8::1", 17, "", 30), hint("10.1.0.2", 17, "", 30)}, Left{}},
		{"one device, the same remote number", // on two hosts
			Snapshot{QPs: []rdma.QP{rc(0, 17, 30), rc(0, 18, 30), rc(0, 19, 31)}, Addresses: two},
			[]fleet.Hint{hint("10.1.0.1", 19, "", 31), hint("2001:db8::1", 19, "", 31)}, Left{Ambiguous: 2}},
		{"RDMA-CM knows one of two", // the other one stays ambiguous for an address that both may have
			Snapshot{QPs: []rdma.QP{rc(0, 17, 30), rc(0, 18, 30)}, CMIDs: []rdma.CMID{{Device: 0, QP: 17, Source: ip("10.1.0.1"), Destination: ip("10.2.0.9")}}, Addresses: two},
			[]fleet.Hint{hint("10.1.0.1", 17, "10.2.0.9", 30), hint("2001:db8::1", 18, "", 30)}, Left{}},
		{"not connected, and UD", Snapshot{QPs: []rdma.QP{init, ud, rc(0, 21, 0)}, Addresses: two}, nil, Left{}},
		{"no address", Snapshot{QPs: []rdma.QP{rc(2, 17, 30)}, Addresses: two}, nil, Left{NoAddress: 1}},
		{"with itself", Snapshot{QPs: []rdma.QP{rc(0, 17, 18)}, CMIDs: []rdma.CMID{{QP: 17, Source: ip("10.1.0.1"), Destination: ip("10.1.0.1")}}, Addresses: two}, nil, Left{Local: 1}},
		{"RDMA-CM knows the source only", // an ID that isn't connected yet
			Snapshot{QPs: []rdma.QP{rc(0, 17, 30)}, CMIDs: []rdma.CMID{{QP: 17, Source: ip("10.1.0.1")}}, Addresses: two},
			[]fleet.Hint{hint("10.1.0.1", 17, "", 30)}, Left{}},
		{"link-local by RDMA-CM", Snapshot{QPs: []rdma.QP{rc(0, 17, 30)}, CMIDs: []rdma.CMID{{QP: 17, Source: ip("fe80::1"), Destination: ip("fe80::2")}}},
			nil, Left{NoAddress: 1}},
	} {
		got, left := Derive(&c.s)
		if !slices.Equal(got, c.want) || left != c.left {
			t.Errorf("%s:\n %v, %+v, expected\n %v, %+v", c.name, got, left, c.want, c.left)
		}
	}
}

// TestDeriveBound: more connections than MaxHints are left out, and counted.
func TestDeriveBound(t *testing.T) {
	s := Snapshot{Addresses: map[Port][]netip.Addr{{0, 1}: ips("10.1.0.1")}}
	for n := range uint32(MaxHints + 100) {
		s.QPs = append(s.QPs, rc(0, 2+n, 2+n))
	}
	if hints, left := Derive(&s); len(hints) != MaxHints || left != (Left{TooMany: 100}) {
		t.Errorf("%d hints, %+v", len(hints), left)
	}
}
