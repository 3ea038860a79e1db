package control

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/link"
	"github.com/cnpgate/cnpgate/lossless"
)

// TestPausesAreLogged: each change once, and nothing while nothing changes.
func TestPausesAreLogged(t *testing.T) {
	var log bytes.Buffer
	p := newPauses(&config.Config{Ports: []config.Port{{
		Name: "wan", ClassNames: []string{"control", "roce"},
		PortConfig: dataplane.PortConfig{FlowControl: &link.FlowControl{Watchdog: lossless.Watchdog{Action: lossless.Alert}}},
	}}}, zerolog.New(&log))
	s := link.Stats{}
	for _, c := range []struct {
		what   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"a storm", func() { s.Detected[1]++ }, []string{`"class":"roce"`, `"action":"alert"`, "PFC storm:"}},
		{"it goes on", func() { s.PFCReceived[3]++ }, nil},
		{"its end", func() { s.Restored[1]++ }, []string{`"class":"roce"`, "is over"}},
		{"another one", func() { s.Detected[0]++ }, []string{`"class":"control"`, "PFC storm:"}},
		{"the limit", func() { s.Expired[3]++ }, []string{`"priority":3`, "xoff_limit"}},
	} {
		c.change()
		log.Reset()
		p.look(0, &s)
		if c.want == nil && log.Len() > 0 {
			t.Errorf("%s: %s", c.what, log.String())
		}
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log has %s, expected %s", c.what, log.String(), want)
			}
		}
	}
}
