package dataplane_test

import (
	"testing"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
)

// TestInHandIsNotOfAnEarlierStage: the report of a panic names no packet that only an earlier stage handled.
func TestInHandIsNotOfAnEarlierStage(t *testing.T) {
	request := data(false, 0)
	request.Opcode, request.PSN = packet.RCWriteOnly, 7
	marked := request
	marked.ECN = packet.CE
	for _, c := range []struct {
		name    string
		frames  [][]byte
		arrives func(*dataplane.Policy)
		breaks  func(*dataplane.Worker)
	}{
		{"classify, then learn", [][]byte{ethernet(0x88cc), request.Frame()}, nil, (*dataplane.Worker).BreakLearning},
		{"a CNP, then learn", [][]byte{receiverCNP(), request.Frame()}, nil, (*dataplane.Worker).BreakLearning},
		{"CE on arrival, then queue", [][]byte{marked.Frame(), request.Frame()}, func(p *dataplane.Policy) { p.Ports[wan].OnArrival = true }, breakQueue},
		{"measure, then queue", [][]byte{request.Frame()}, func(p *dataplane.Policy) {
			p.Ports[wan].STAMP = host.STAMPSession{Peer: address("192.0.2.9"), Interval: 1000 * ms}
		}, breakQueue},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := notifying(byAnything...)
			if c.arrives != nil {
				c.arrives(p)
			}
			r := testkit.New(t, testkit.Setup{Policy: p})
			c.breaks(r.Plane.Worker(0))
			r.Inject(t, fabric, c.frames...)
			if !panics(func() { r.Plane.Worker(0).Step() }) {
				t.Fatal("the worker goes on")
			}
			if h, ok := r.Plane.Worker(0).InHand(); !ok || h.Place != -1 || h.Burst != len(c.frames) {
				t.Errorf("%v, place %d of %d, expected an unknown one of %d", ok, h.Place, h.Burst, len(c.frames))
			}
		})
	}
}

func breakQueue(w *dataplane.Worker) { w.BreakQueue(wan) }

// receiverCNP is a CNP, which belongs to no flow.
func receiverCNP() []byte {
	cnp := data(false, 0)
	cnp.Opcode, cnp.Size = packet.CNP, 0
	return cnp.Frame()
}

func panics(f func()) (does bool) {
	defer func() { does = recover() != nil }()
	f()
	return false
}
