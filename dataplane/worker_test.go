package dataplane

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/cnpgate/cnpgate/dataplane/egress"
	"github.com/cnpgate/cnpgate/dataplane/host"
	"github.com/cnpgate/cnpgate/dataplane/respond"
	"github.com/cnpgate/cnpgate/dataplane/stage"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/pairing"
)

// testWorker is a worker with flows and accounts, and no device.
func testWorker(t testing.TB, c Config) *Worker {
	t.Helper()
	shared, err := pairing.New(make([]byte, pairing.Size(c.paired())), pairing.Config{Flows: c.paired(), Egress: []int{1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	c.Allocate = func(bytes int) ([]byte, error) {
		words := make([]uint64, (bytes+7)/8)
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes), nil
	}
	w := &Worker{plane: &Dataplane{pairing: shared, law: respond.NewShared(1, 1)}, state: stage.State{Host: &host.Stage{}, Ports: make([]PortConfig, 1), Egress: make([]egress.Port, 1)}}
	err = errors.Join(w.initFlows(&c), w.initStages(&c))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func testKey(n uint32) flowtable.Key { return flowtable.Key{DestQP: 2 + n} }

// records has a packet of each flow.
func records(keys ...flowtable.Key) []packet.Record {
	packets := make([]packet.Record, len(keys))
	for i := range keys {
		packets[i].Flow = keys[i].Words()
	}
	return packets
}

// see has a worker see a packet of a flow.
func (w *Worker) see(k flowtable.Key, now int64) flowtable.Index {
	var x [1]flowtable.Ref
	w.state.Flows.Lookup(records(k), now, x[:])
	return x[0].Index
}
