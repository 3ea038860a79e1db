package replay

import (
	"errors"
	"time"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/report"
)

// Live is a replay of frames that the caller gives one by one, with the port at which each arrived.
type Live struct {
	run    *run
	config *config.Config
}

// NewLive starts a replay. first is the time of the first frame, captured bounds the bytes at hand of each frame. The caller must call End.
func NewLive(c *config.Config, first time.Time, captured int) (*Live, error) {
	l := &Live{newRun(c, Options{}), c}
	if err := l.run.start(c, first, captured); err != nil {
		return nil, errors.Join(err, l.run.memory.Release())
	}
	return l, nil
}

// Add makes a frame arrive at the fabric port, or else at the WAN port. Its time counts from the first frame; an earlier time than that of the frame
// before counts as the same.
func (l *Live) Add(fromFabric bool, f capturefile.Frame) error {
	port := l.run.wan
	if fromFabric {
		port = l.run.fabric
	}
	return l.run.add(port, f)
}

// End makes the report, and frees the memory.
func (l *Live) End() (*report.Report, error) {
	r, err := l.run.end(l.config)
	return r, errors.Join(err, l.run.memory.Release())
}
