package synth

import (
	"encoding/binary"
	"hash/fnv"
	"testing"
)

// digest is a hash over every frame of a run, its time and the truth about it.
func digest(c Config) uint64 {
	h := fnv.New64a()
	t := New(c)
	var truth [32]byte
	for e, ok := t.Next(); ok; e, ok = t.Next() {
		binary.BigEndian.PutUint64(truth[0:], uint64(e.Time))
		binary.BigEndian.PutUint32(truth[8:], uint32(e.Conn))
		binary.BigEndian.PutUint32(truth[12:], e.SourceQP)
		binary.BigEndian.PutUint32(truth[16:], e.Message)
		truth[20] = byte(e.From)
		for i, is := range []bool{e.Forged, e.Resent, e.Lost} {
			truth[21+i] = 0
			if is {
				truth[21+i] = 1
			}
		}
		h.Write(truth[:])
		h.Write(Frame(&e))
	}
	return h.Sum64()
}

// TestUnchanged compares runs with what they were when the test was written. A new knob whose value is zero must not change them: then
// figures and seeds in other tests, and in reports of failures, keep their meaning.
func TestUnchanged(t *testing.T) {
	lockstep := Config{Seed: 7, Schedule: Lockstep, StartPSN: PSNZero, Ports: PortsEqual, QPNs: QPSequential, Jitter: 500, Messages: 4}
	tenants := busy(5)
	tenants.Tenants, tenants.IPv6, tenants.Lifetime, tenants.Messages, tenants.Reuse = 2, true, 3e6, 1000, ReuseShuffled
	blind := Config{Seed: 9, Connections: 64, Messages: 4, CM: true, NoDREQ: true, Spread: 1e6, Generations: 1, Reuse: ReusePeerHost,
		Hosts: [2]int{2, 2}, Sight: SeeMixed, Attack: Attack{Interval: 4000, ACK: true, CNP: true, CM: true}}
	for _, c := range []struct {
		name   string
		config Config
		want   uint64
	}{
		{"zero", Config{}, 0x3b862a446b55f013},
		{"busy", busy(1), 0xe8f4f73750df6b4c},
		{"lockstep", lockstep, 0xc5406c328059a778},
		{"tenants", tenants, 0x5f74c518fc4d2913},
		{"blind attacker", blind, 0x2e31cbecabdd281c},
	} {
		if got := digest(c.config); got != c.want {
			t.Errorf("%s: digest %#x, want %#x", c.name, got, c.want)
		}
	}
}
