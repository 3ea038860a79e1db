//go:build nobgp

package bgp

import (
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/proxy"
)

// available reports whether this build has BGP.
const available = false

// Speaker doesn't exist in this build: Load returns an error for any configuration with BGP, so that no settings exist from which one could start.
type Speaker struct{}

// Start returns the error of Load.
func Start(s *Settings, _ zerolog.Logger, _ func([]proxy.Sender)) (*Speaker, error) {
	_, err := Load(&s.BGP)
	return nil, err
}

// Apply returns the error of Load.
func (*Speaker) Apply(s *Settings) error {
	_, err := Load(&s.BGP)
	return err
}

// Stop has nothing to stop.
func (*Speaker) Stop() {}

// Status is that of no speaker.
func (*Speaker) Status() advertise.Status { return advertise.Status{} }
