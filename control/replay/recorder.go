package replay

import (
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/control/episode"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/dataplane/stepper"
)

const (
	firstStep        = int64(time.Millisecond) // between two samples
	maxSamples       = 1024                    // when there are more, every other one is dropped, and further ones come half as often
	maxNotifications = 4096                    // that are kept, the first ones
	recordsAtOnce    = 64
)

// Recorder records what happens in a replay: samples of the counters, congestion episodes, and notifications. It doesn't change what happens.
type Recorder struct {
	First         time.Time // of the first frame
	Samples       []Sample
	Episodes      []report.Episode
	Notifications []report.Notification // sent or observed, and suppressed; by time within each kind
	Lost          uint64                // notifications that are not among them

	config  *config.Config
	plane   *dataplane.Dataplane
	time    *stepper.Stepper
	step    int64
	watcher *episode.Watcher
	read    [2]uint64 // records of each list of the worker
}

// Sample has the counters at a time since the first frame.
type Sample struct {
	Time     time.Duration
	Counters *report.Counters
}

func (r *Recorder) start(c *config.Config, plane *dataplane.Dataplane, clock *stepper.Stepper, first time.Time) {
	r.config, r.plane, r.time, r.First, r.step = c, plane, clock, first, firstStep
	r.watcher = episode.NewWatcher(plane, report.EpisodePorts(c))
	clock.Watch, clock.WatchAt = r.watch, epoch
}

// watch takes a sample at a virtual time.
func (r *Recorder) watch(now int64) {
	r.time.WatchAt = now + r.step
	r.watcher.Watch(r.First.UnixNano()+now-epoch, func(*episode.Episode, episode.Event) {})
	r.takeNotifications()
	r.Samples = append(r.Samples, Sample{time.Duration(now - epoch), report.MakeCounters(r.config, r.plane)})
	if len(r.Samples) > maxSamples {
		for i := 0; 2*i < len(r.Samples); i++ {
			r.Samples[i] = r.Samples[2*i]
		}
		kept := (len(r.Samples) + 1) / 2
		clear(r.Samples[kept:])
		r.Samples, r.step = r.Samples[:kept], 2*r.step
	}
}

// takeNotifications takes what the worker has recorded since the last call.
func (r *Recorder) takeNotifications() {
	piece := make([]notify.NotificationRecord, recordsAtOnce)
	w := r.plane.Worker(0)
	for i, list := range []*notify.History{w.Notifications(), w.SuppressedNotifications()} {
		for end := list.Recorded(); r.read[i] < end; {
			n, next := list.Read(r.read[i], piece)
			r.Lost += next - r.read[i] - uint64(n)
			r.read[i] = next
			for k := range piece[:n] {
				if len(r.Notifications) == maxNotifications {
					r.Lost++
					continue
				}
				r.Notifications = append(r.Notifications, report.MakeNotification(r.config, 0, &piece[k], false))
			}
		}
	}
}

// end makes the episodes.
func (r *Recorder) end() {
	for _, e := range r.watcher.Episodes() {
		r.Episodes = append(r.Episodes, report.MakeEpisode(r.config, &e))
	}
}
