//go:build !nodpdk

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/cnpgate/cnpgate/agent"
)

// fleetOfTwo starts a nats-server, and returns the configuration of two gateways that connect to it.
func (b *bench) fleetOfTwo() (sections [2]string, err error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		return sections, err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		return sections, errors.New("the nats-server did not start")
	}
	var public [2]string
	key := func(i int) string { return filepath.Join(b.dir, fmt.Sprintf("%d.nk", i)) }
	for i := range public {
		_ = os.Remove(key(i))
		if public[i], err = agent.CreateKey(key(i)); err != nil {
			return sections, err
		}
	}
	for i := range sections {
		sections[i] = fmt.Sprintf("fleet: {site: bench, name: gw%d, key: %q, members: [{name: gw0, key: %s}, {name: gw1, key: %s}], servers: [%q]}\n",
			i, key(i), public[0], public[1], s.ClientURL())
	}
	return sections, nil
}
