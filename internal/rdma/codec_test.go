package rdma

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"testing/fstest"
)

// The messages in testdata are the answers of Linux 6.1 in a host with Soft-RoCE (TestRecord): two connections of ibv_rc_pingpong and rping with
// itself, and a QP of ibv_uc_pingpong that isn't connected yet.
func message(t testing.TB, command int) []byte {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Fatal("the messages in testdata are of a little-endian machine")
	}
	b, err := os.ReadFile(fmt.Sprintf("testdata/command%02d", command))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGolden: what the program rdma prints of the same host is what the messages are read as.
func TestGolden(t *testing.T) {
	d, err := parseDevice(message(t, cmdDevice))
	if want := (Device{0, "rxe0", 1, "roce"}); err != nil || d != want {
		t.Errorf("%+v, %v, expected %+v", d, err, want)
	}
	device, n, err := parseCount(message(t, cmdResources))
	if err != nil || device != 0 || n != 6 {
		t.Errorf("device %d has %d QPs, %v; expected 6", device, n, err)
	}
	var qps []QP
	err = eachQP(message(t, cmdQPs), func(q QP) { qps = append(qps, q) })
	want := []QP{
		{0, 1, 17, 18, RC, 3}, {0, 1, 18, 17, RC, 3}, {0, 1, 19, 0, UC, 1}, {0, 1, 20, 21, RC, 3}, {0, 1, 21, 20, RC, 3}, {0, 1, 1, 0, 1, 3},
	}
	if err != nil || !slices.Equal(qps, want) {
		t.Errorf("%v, %+v, expected %+v", err, qps, want)
	}
	for _, q := range qps {
		if q.Connected() != (q.Remote != 0) {
			t.Errorf("%+v: connected %v", q, q.Connected())
		}
	}
	var ids []CMID
	err = eachCMID(message(t, cmdCMIDs), func(c CMID) { ids = append(ids, c) })
	me := netip.MustParseAddr("198.18.0.2")
	if want := []CMID{{0, 20, me, me}, {0, 21, me, me}}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v, %+v, expected %+v", err, ids, want)
	}
}

func TestConnected(t *testing.T) {
	for _, c := range []struct {
		q    QP
		want bool
	}{
		{QP{Transport: RC, State: RTR, Remote: 17}, true},
		{QP{Transport: UC, State: SQD, Remote: 17}, true},
		{QP{Transport: RC, State: 1, Remote: 17}, false}, // INIT
		{QP{Transport: RC, State: 6, Remote: 17}, false}, // ERR
		{QP{Transport: RC, State: 3, Remote: 1}, false},
		{QP{Transport: 4, State: 3, Remote: 17}, false}, // UD
	} {
		if got := c.q.Connected(); got != c.want {
			t.Errorf("%+v: %v", c.q, got)
		}
	}
}

// TestAddressOfSocket: both families, IPv4 in IPv6, InfiniBand, and what is too short.
func TestAddressOfSocket(t *testing.T) {
	family := func(f uint16, rest ...byte) []byte { return append(binary.NativeEndian.AppendUint16(nil, f), rest...) }
	six := netip.MustParseAddr("2001:db8::1")
	mapped := netip.AddrFrom16(netip.MustParseAddr("::ffff:10.0.0.1").As16()).As16()
	a16 := six.As16()
	for want, b := range map[string][]byte{
		"10.0.0.1":    family(2, 0, 0, 10, 0, 0, 1),
		"2001:db8::1": family(10, append(make([]byte, 6), a16[:]...)...),
		"invalid IP":  family(27, make([]byte, 100)...),
	} {
		if got := address(b).String(); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	if got := address(family(10, append(make([]byte, 6), mapped[:]...)...)); got != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("IPv4 in IPv6: %v", got)
	}
	for _, b := range [][]byte{nil, family(2, 0, 0, 10), family(10, make([]byte, 20)...)} {
		if got := address(b); got.IsValid() {
			t.Errorf("%x: %v", b, got)
		}
	}
}

// TestAddresses: IPv4 and global IPv6 of RoCEv2, each once, and neither RoCEv1's, link-local ones, nor indexes without a GID.
func TestAddresses(t *testing.T) {
	sysfs := fstest.MapFS{}
	for i, c := range []struct{ gid, kind string }{
		{"fe80:0000:0000:0000:0000:00ff:fe00:0010", "IB/RoCE v1"}, {"fe80:0000:0000:0000:0000:00ff:fe00:0010", "RoCE v2"},
		{"0000:0000:0000:0000:0000:ffff:c612:0002", "IB/RoCE v1"}, {"0000:0000:0000:0000:0000:ffff:c612:0002", "RoCE v2"},
		{"0000:0000:0000:0000:0000:ffff:c612:0002", "RoCE v2"}, // of another VLAN
		{"0000:0000:0000:0000:0000:0000:0000:0000", ""}, {"2001:0db8:0000:0000:0000:0000:0000:0002", "RoCE v2"}, {"0000:0000:0000:0000:0000:0000:0000:0000", ""}, {"garbage", "RoCE v2"},
	} {
		sysfs[fmt.Sprintf("mlx5_0/ports/1/gids/%d", i)] = &fstest.MapFile{Data: []byte(c.gid + "\n")}
		if c.kind != "" {
			sysfs[fmt.Sprintf("mlx5_0/ports/1/gid_attrs/types/%d", i)] = &fstest.MapFile{Data: []byte(c.kind + "\n")}
		}
	}
	got, err := Addresses(sysfs, "mlx5_0", 1)
	if want := []netip.Addr{netip.MustParseAddr("198.18.0.2"), netip.MustParseAddr("2001:db8::2")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, expected %v", got, err, want)
	}
	if _, err := Addresses(sysfs, "mlx5_1", 1); err == nil {
		t.Error("a device that doesn't exist: no error")
	}
}

// FuzzMessages: no message panics a decoder, and none passes more entries than fit into it.
func FuzzMessages(f *testing.F) {
	for _, command := range []int{cmdDevice, cmdResources, cmdQPs, cmdCMIDs} {
		f.Add(message(f, command))
	}
	f.Add([]byte{4, 0, 19, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseDevice(b)
		_, _, _ = parseCount(b)
		n := 0
		_ = eachQP(b, func(QP) { n++ })
		_ = eachCMID(b, func(CMID) { n++ })
		if n > len(b)/attrHeader {
			t.Errorf("%d entries in %d bytes", n, len(b))
		}
	})
}

// TestMutants: messages that were cut or changed end in an error or in other values, not in a panic.
func TestMutants(t *testing.T) {
	b := message(t, cmdQPs)
	for n := range b {
		_ = eachQP(b[:n], func(QP) {})
		for bit := range 8 {
			changed := slices.Clone(b)
			changed[n] ^= 1 << bit
			_ = eachQP(changed, func(QP) {})
		}
	}
	if err := eachQP(b[:len(b)-1], func(QP) {}); err == nil {
		t.Error("a message that was cut: no error")
	}
}
