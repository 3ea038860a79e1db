// Package metrics serves the gateway's metrics to Prometheus: every metric of package telemetry, under its name with the prefix cnpgate_, over HTTP
// at /metrics. It reads what workers have published, so that a scrape costs them nothing.
//
// Prometheus uses base units: metrics in nanoseconds are converted to seconds, and those in percent to ratios. Their names change accordingly.
package metrics

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/control/fleetlink"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/health"
)

const (
	path           = "/metrics"
	maxConnections = 32 // so that clients can't use up the process's descriptors; further ones wait in the kernel
	maxRequests    = 4  // at a time
	requestTime    = 5 * time.Second
	maxHeader      = 16 << 10
)

// Source is the gateway. Any goroutine may call it.
type Source struct {
	Counters func() *report.Counters
	// Problems are the ports that don't forward, by name, and why.
	Problems func() map[string]string
	Build    Build
	// Hash is that of the configuration in force.
	Hash func() string
	BGP  func() advertise.Status
	// Fleet is nil where the gateway is in none.
	Fleet func() fleetlink.FleetStatus
	// RDMA is the latest report about RDMA connections.
	RDMA func() *health.Report
}

// Build identifies the program.
type Build struct {
	Version string
	Commit  string // of the sources, "" if not known
	DPDK    string // version of DPDK, or what replaces it
}

// Server serves one gateway's metrics.
type Server struct {
	listener net.Listener
	http     http.Server
}

// Open listens at an address with a port; requests wait until Serve answers them. Errors outside of requests go to the log.
func Open(address string, s Source, log *log.Logger) (*Server, error) {
	listener, err := net.Listen(network(address), address)
	if err != nil {
		return nil, err
	}
	return newServer(listener, s, log), nil
}

func newServer(listener net.Listener, s Source, log *log.Logger) *Server {
	handler := http.NewServeMux()
	handler.Handle("GET "+path, promhttp.HandlerFor(registry(s), promhttp.HandlerOpts{ErrorLog: log, MaxRequestsInFlight: maxRequests, Timeout: requestTime}))
	return &Server{netutil.LimitListener(listener, maxConnections), http.Server{
		Handler: handler, ErrorLog: log, ReadTimeout: requestTime, ReadHeaderTimeout: requestTime, WriteTimeout: 2 * requestTime, IdleTimeout: requestTime, MaxHeaderBytes: maxHeader,
	}}
}

// network is the network of an address's IP version: with "tcp" and 0.0.0.0, Go also listens on all IPv6 addresses.
func network(address string) string {
	if a, err := netip.ParseAddrPort(address); err == nil && a.Addr().Is4() {
		return "tcp4"
	}
	return "tcp6"
}

// registry has the metrics of the gateway and of the process.
func registry(s Source) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve answers until the context ends. It must be called once.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() }) // interrupted clients ask again
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
