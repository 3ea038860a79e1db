package replay_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
)

// TestRecorder: recording changes neither the report nor a frame, and records what the report counts: depths up to the watermark, the notifications, and
// episodes with the flows and senders.
func TestRecorder(t *testing.T) {
	const dir = "../../testdata/golden/limits/"
	r, sent := recorded(t, dir+"config.yaml", dir+"in.pcap", "fd00::/16")
	if r.Lost != 0 || sent == 0 || uint64(len(r.Notifications)) <= sent {
		t.Errorf("%d notifications were sent, %d are recorded with the suppressed ones, and %d are lost", sent, len(r.Notifications), r.Lost)
	}
	of := uint64(0)
	for _, n := range r.Notifications {
		if n.Why == "" {
			t.Fatalf("%+v says not why", n)
		}
		if n.Outcome == "sent" {
			of++
		}
	}
	if of != sent {
		t.Errorf("%d notifications were sent, %d are recorded", sent, of)
	}
}

// recorded replays a capture with and without a recorder, and compares.
func recorded(t *testing.T, config, path, fabric string) (recorder *replay.Recorder, sent uint64) {
	t.Helper()
	var reports, emitted [2]bytes.Buffer
	recorder = &replay.Recorder{}
	for i, r := range []*replay.Recorder{nil, recorder} {
		result := run(t, loadConfig(t, config), path, replay.Options{Fabric: []netip.Prefix{netip.MustParsePrefix(fabric)}, Emitted: &emitted[i], Recorder: r})
		if err := result.Write(&reports[i]); err != nil {
			t.Fatal(err)
		}
		if r == nil {
			continue
		}
		sent = total(result, "notifications_sent_total")
		last := r.Samples[len(r.Samples)-1].Counters
		for name, reading := range result.Counters {
			if last.Counters[name].Value != reading.Value {
				t.Errorf("the last sample has %s %d, the report %d", name, last.Counters[name].Value, reading.Value)
			}
		}
	}
	if !bytes.Equal(reports[0].Bytes(), reports[1].Bytes()) || !bytes.Equal(emitted[0].Bytes(), emitted[1].Bytes()) {
		t.Error("recording has changed the replay")
	}
	deepest := uint64(0)
	for i, s := range recorder.Samples {
		if i > 0 && s.Time <= recorder.Samples[i-1].Time {
			t.Fatalf("sample %d is at %v, the one before at %v", i, s.Time, recorder.Samples[i-1].Time)
		}
		deepest = max(deepest, s.Counters.Ports[1].DepthBytes)
	}
	if most := recorder.Samples[len(recorder.Samples)-1].Counters.Ports[1].WatermarkBytes; deepest < most/2 || deepest > most {
		t.Errorf("the samples see a depth of %d bytes, the watermark is %d", deepest, most)
	}
	ofEpisodes, flows := uint64(0), 0
	for _, e := range recorder.Episodes {
		for _, n := range e.Notifications {
			ofEpisodes += n
		}
		flows += len(e.Flows)
	}
	if len(recorder.Episodes) == 0 || ofEpisodes == 0 || flows == 0 {
		t.Errorf("%d episodes with %d notifications and %d flows", len(recorder.Episodes), ofEpisodes, flows)
	}
	return recorder, sent
}
