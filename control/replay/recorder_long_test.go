//go:build long

package replay_test

import "testing"

// TestRecorderBounds: a long capture has a bounded number of samples and notifications.
func TestRecorderBounds(t *testing.T) {
	const name = "../../testdata/captures/rc_write_congested_v4"
	r, sent := recorded(t, name+".yaml", unpacked(t, name+".pcap.bz2"), "198.18.0.2/32")
	if n := len(r.Samples); n < 500 || n > 1024 {
		t.Errorf("%d samples, expected 500 to 1024", n)
	}
	if n := uint64(len(r.Notifications)); n > 4096 || n+r.Lost < sent {
		t.Errorf("%d notifications are recorded, %d lost, and %d were sent", n, r.Lost, sent)
	}
}
