package dpdk

import "testing"

// TestBufferFor: what each driver wants of a buffer for an MTU it is set to, by its source in DPDK 22.11.
func TestBufferFor(t *testing.T) {
	for mtu := 576; mtu <= 16000; mtu++ {
		size, device := bufferFor(mtu), mtu+tagRoom
		for driver, want := range map[string]int{
			"net_virtio": device + 14 + 4 + 12, // virtio_check_rxq: header, tag, the virtio header
			"ixgbe":      device + 14 + 4 + 8,  // ixgbe_dev_rx_init: FCS and two tags; it counts whole KiB
			"i40e, ice":  device + 14 + 4 + 8,  // in units of 128 bytes
			"e1000e":     device + 14 + 4 + 4,
		} {
			if usable := size / 1024 * 1024; usable < want {
				t.Fatalf("MTU %d: %s needs %d bytes in a buffer, of %d it uses %d", mtu, driver, want, size, usable)
			}
		}
	}
}
