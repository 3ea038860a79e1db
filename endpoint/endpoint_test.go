package endpoint

import "testing"

// TestMessagesComplete: messages of each kind and size arrive whole and are acknowledged.
func TestMessagesComplete(t *testing.T) {
	for _, c := range []struct {
		name     string
		op       Op
		bytes    uint32
		messages int
		data     uint64 // packets with data, READ requests included
	}{
		{"write of one packet", Write, 1, 1, 1},
		{"empty write", Write, 0, 1, 1},
		{"write of the MTU", Write, 1024, 1, 1},
		{"write of two packets", Write, 1025, 1, 2},
		{"long write", Write, 1 << 20, 3, 3 * 1024},
		{"send", Send, 5000, 10, 50},
		{"read", Read, 1, 1, 2},
		{"long reads", Read, 100_000, 40, 40 * (98 + 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var done []Completion
			n := newNetwork(t, Config{Payload: PayloadReal, Completed: func(d Completion) { done = append(done, d) }}, 5000)
			a, _ := n.connect(0xfffff0, 7)
			payload := 0
			n.seen = func(_ int64, _ int, frame []byte, length int) {
				if p := parsed(frame, length); p.Opcode.HasPayload() {
					payload += int(p.ICRC) - int(p.Payload) - int(frame[p.BTH+1]>>padShift&3)
				}
			}
			n.start(0, Stream{QP: a, Op: c.op, Bytes: c.bytes, Messages: c.messages, ID: 42})
			n.run(never)
			if len(done) != c.messages {
				t.Fatalf("%d messages complete, want %d", len(done), c.messages)
			}
			for i, d := range done {
				if d.Failed || d.ID != 42 || d.Message != i || d.Bytes != c.bytes || d.Done < 2*n.delay {
					t.Errorf("completion %d: %+v", i, d)
				}
			}
			sent := n.hosts[0].Counters().DataSent + n.hosts[1].Counters().DataSent
			if payload != int(c.bytes)*c.messages {
				t.Errorf("%d bytes of payload, want %d", payload, int(c.bytes)*c.messages)
			}
			if sent != c.data {
				t.Errorf("%d packets with data, want %d", sent, c.data)
			}
		})
	}
}
