package synth

import "github.com/cnpgate/cnpgate/internal/packet"

// enqueue puts a packet that passes the tap now into the bottleneck. It returns how long the packet waits and is sent, in ns; false if the
// packet doesn't fit and is lost.
func (t *Traffic) enqueue(f *flight) (delay int64, fits bool) {
	b := &t.c.Bottleneck
	length := t.length(f)
	wait := max(0, t.idleAt-t.now)
	waiting := float64(wait) * float64(b.Rate) / 8e9 // bytes
	if waiting+float64(length) > float64(b.Capacity) {
		return 0, false
	}
	delay = wait + int64(float64(length)*8e9/float64(b.Rate))
	t.idleAt = t.now + delay
	return delay, true
}

// length is the length of a packet's frame in bytes without FCS.
func (t *Traffic) length(f *flight) int {
	headers := t.shown[f.conn][f.from].Ext() + f.op.HeadersLen()
	return headers + (int(f.octets)+3)&^3 + packet.ICRCLen
}
