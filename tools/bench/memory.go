package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/cnpgate/cnpgate/control/assemble"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/internal/burst"
	"github.com/cnpgate/cnpgate/internal/burst/inmem"
)

// memory is the program that measures the memory of flows: the increase of the process's memory after a packet of each flow has passed
// through a complete gateway, with tables, queues, pairing and limits.
func memory(args []string) error {
	if len(args) != 1 {
		return errors.New("memory: expected a number of flows")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	setup := gatewaySetup{Workers: []int{0}, Burst: countedBurst, Devices: []string{"net_null0", "net_null1"}, Room: roomOf(0), Flows: n}
	c, err := config.Parse("bench.yaml", []byte(setup.yaml("")))
	if err != nil {
		return err
	}
	buffers := make([]byte, 1024*smallRoom)
	backend, err := inmem.New(inmem.Config{Ports: 2, Burst: countedBurst, BufferSize: smallRoom, Memory: buffers})
	if err != nil {
		return err
	}
	for i := range buffers {
		buffers[i] = 1 // resident from the start
	}
	before, err := resident()
	if err != nil {
		return err
	}
	plane, err := assemble.Dataplane(c, assemble.Options{Backends: []burst.Backend{backend}, Seed: 1})
	if err != nil {
		return err
	}
	if err := learn(backend, plane.Worker(0), n); err != nil {
		return err
	}
	if known := plane.Worker(0).FlowStats().Flows; known != uint64(n) {
		return fmt.Errorf("%d of %d flows are known", known, n)
	}
	after, err := resident()
	if err != nil {
		return err
	}
	fmt.Printf("ready\n{\"extra\":{\"octets\":%d,\"process\":%d}}\n", after-before, after)
	return nil
}

// learn sends a packet of each flow through a worker.
func learn(b *inmem.Backend, w *dataplane.Worker, flows int) error {
	t := traffic{payload: smallest}
	frame := t.frame()
	for i := range flows {
		t.put(frame, i)
		if !b.Inject(0, frame, uint32(len(frame))) {
			return errors.New("no buffer for a frame")
		}
		if i%countedBurst == countedBurst-1 || i == flows-1 {
			b.SetTime(int64(i) * 1000)
			w.Step()
		}
	}
	return nil
}

// resident is the process's resident memory in bytes.
func resident() (int, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, err := strconv.Atoi(string(bytes.Fields(text)[1]))
	return pages * os.Getpagesize(), err
}
