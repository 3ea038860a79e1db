// Command pictures draws the pictures of the documentation that show a run of the gateway (scripts/screenshots): what cnpgate top has on a terminal, and
// the time series of the Grafana dashboard, from the Prometheus server that has read the gateway's metrics.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	dashboard := flag.String("dashboard", "", "draw the time series of this dashboard")
	prometheus := flag.String("prometheus", "http://127.0.0.1:9090", "server with the metrics")
	seconds := flag.Int("seconds", 60, "draw the last so many seconds")
	flag.Parse()
	if err := draw(*dashboard, *prometheus, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func draw(dashboard, prometheus string, seconds int) error {
	if dashboard != "" {
		return drawDashboard(os.Stdout, dashboard, prometheus, seconds)
	}
	recorded, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	return drawScreen(os.Stdout, string(recorded))
}
