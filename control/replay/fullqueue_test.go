package replay_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/telemetry"
)

// fullConfig has a WAN queue that takes nearly all of a replay's buffers and hardly drains, and notifies for every frame above K_max.
const fullConfig = `gateway: {name: gw, ipv4: 192.0.2.1}
dpdk: {burst: %d}
ports:
  - {name: dc, device: d0, role: fabric, peer: wan, rate: 100Gbps, mtu: 1500, queue_capacity: 65KB}
  - {name: wan, device: d1, role: wan, peer: dc, rate: 100kbps, mtu: 1500, queue_capacity: %dB}
flows: {capacity: 1Ki}
profiles: {default: {mode: thresholds, interval: 1us, actions: [mark, rate-reduce]}}
qp_map: [{source_ip: 10.1.0.1, destination_ip: 10.9.0.9, source_qp: 50, destination_qp: 100}]
endpoints: [{prefix: 10.1.0.0/16, accepts: [long-haul-cnp]}]
notifications: {long_haul_cnp: {enabled: true}, limits: {per_flow: 0s, per_destination: 0/s, per_port: 0/s}}
`

// TestNotifiesWithFullQueues: with data waiting in nearly every buffer of the replay a notification is sent for every frame that finds its
// queue above K_max, as a device would send it: the pool has buffers for full queues and for notifications.
func TestNotifiesWithFullQueues(t *testing.T) {
	const size, kMax, frameCount = 1000, 64_000, 5000
	const capacity = frameCount * 1024
	for _, burst := range []int{1, 32, 64} {
		t.Run(fmt.Sprintf("burst %d", burst), func(t *testing.T) {
			var records []record
			for n := range uint32(frameCount) {
				f := testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100, ECN: 2, PSN: n, Size: size}.Frame()
				at := n / uint32(burst) * uint32(burst) // a burst at a time, us
				records = append(records, whole(at/1_000_000, at%1_000_000, f))
			}
			c, err := replay.Open(save(t, classic(binary.LittleEndian, micro, 1, records...)), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var emitted bytes.Buffer
			r, err := replay.Run(parseConfig(t, fmt.Sprintf(fullConfig, burst, capacity)), c, replay.Options{
				Fabric: prefixes("10.1.0.0/16"), Emitted: &emitted})
			if err != nil {
				t.Fatal(err)
			}
			for reason, n := range r.Counters[telemetry.NotificationsSuppressed.Name].By {
				if n != 0 {
					t.Errorf("%d notifications were suppressed, reason %s", n, reason)
				}
			}
			const below = kMax/size + 2 // these find the queue at K_max or below; one leaves at once, and K_max itself is not above it
			const perRound = 16         // of the frames of a burst
			if got, want := len(frames(t, emitted.Bytes())), frameCount*min(burst, perRound)/burst-below; got < want {
				t.Errorf("%d notifications for %d frames, of which at most %d found the queue at or below K_max: want %d", got, frameCount, below, want)
			}
		})
	}
}
