//go:build !nofleet

package fleetlink

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/fleet"
	"github.com/cnpgate/cnpgate/fleet/wire"
)

// Bounds of the embedded server.
const (
	maxConnections = 4096
	maxPending     = 8 << 20 // bytes that wait for a slow client, which is then disconnected
	startTime      = 5 * time.Second
)

// startServer starts the nats-server in the gateway. Each gateway and host may publish below its own name only; only gateways may subscribe.
func startServer(c *config.Fleet, t *tls.Config) (*server.Server, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("fleet.listen: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("fleet.listen: %w", err)
	}
	o := &server.Options{
		ServerName: "cnpgate-" + c.Site + "-" + c.Name, Host: host, Port: number, NoSigs: true, NoLog: true, MaxConn: maxConnections,
		MaxPayload: wire.MaxMessage, MaxPending: maxPending, MaxSubs: 256, MaxControlLine: 1024, WriteDeadline: 2 * time.Second,
		PingInterval: 5 * time.Second, MaxPingsOut: 2, TLSConfig: t, TLS: t != nil, TLSVerify: t != nil, TLSTimeout: 2, AuthTimeout: 3,
		JetStream: c.Episodes.Store != "", StoreDir: c.Episodes.Store, JetStreamMaxMemory: 1 << 20, JetStreamMaxStore: 2 * int64(c.Episodes.MaxBytes),
	}
	for _, m := range c.Members {
		publish := []string{fleet.MayPublish(c.Site, m.Name)}
		subscribe := []string{fleet.MaySubscribe(c.Site)}
		if m.Name == c.Name {
			publish, subscribe = append(publish, "$JS.API.>"), append(subscribe, "_INBOX.>")
		}
		o.Nkeys = append(o.Nkeys, user(m.Key, publish, subscribe))
	}
	for _, h := range c.Hosts {
		o.Nkeys = append(o.Nkeys, user(h.Key, []string{fleet.MayPublish(c.Site, h.Name)}, nil))
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("fleet: the embedded server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		s.Shutdown()
		return nil, fmt.Errorf("fleet.listen: the embedded server doesn't listen at %s after %v: is the address this machine's, and the port free?", c.Listen, startTime)
	}
	return s, nil
}

func user(key string, publish, subscribe []string) *server.NkeyUser {
	p := &server.Permissions{Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}
	if len(subscribe) == 0 {
		p.Subscribe = &server.SubjectPermission{Deny: []string{">"}}
	}
	return &server.NkeyUser{Nkey: key, Permissions: p}
}
