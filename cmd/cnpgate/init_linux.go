package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/propose"
	"github.com/cnpgate/cnpgate/internal/netif"
)

// readInterface describes an interface. It refuses one that the gateway must not take from this machine, and one that receives nothing.
func readInterface(name string) (netif.Facts, error) {
	facts, err := netif.Describe(name)
	if err != nil {
		return facts, err
	}
	uses, err := netif.Uses(name, sshPeer())
	switch {
	case err != nil:
		return facts, err
	case len(uses) > 0:
		return facts, fmt.Errorf("a gateway on interface %s would cut this machine's own network: %s; expected an interface that only the gateway uses: "+
			"choose another one, or move the machine's addresses and routes to another interface", name, strings.Join(uses, "; "))
	case !facts.Up:
		return facts, fmt.Errorf("interface %s has no link; expected one that is up: `ip link set %s up`, and check the cable", name, name)
	}
	return facts, nil
}

// proposedCore is a core near the NICs.
func proposedCore(p *propose.Plan) (int, error) {
	return netif.LastCore(max(p.WAN.NUMA, p.Fabric.NUMA))
}

// pollTime bounds how late the end of a context is noticed, in milliseconds.
const pollTime = 100

// heard is a side that is listened to, with the frame that comes next.
type heard struct {
	*netif.Listener
	next  netif.Copy
	waits bool
}

// listen gives add the frames of two interfaces, or of one if wan is "", in the order of time, until the context ends. lost is how many could not be read in time.
func listen(ctx context.Context, fabric, wan string, began func(), add func(fromFabric bool, first time.Time, f capturefile.Frame) error) (lost uint64, err error) {
	var sides [2]heard
	for i, name := range []string{fabric, wan} {
		if name == "" {
			continue
		}
		if sides[i].Listener, err = netif.Listen(name); err != nil {
			if errors.Is(err, fs.ErrPermission) {
				err = fmt.Errorf("%w; run it as root (sudo), or give the program CAP_NET_RAW", err)
			}
			return 0, err
		}
		defer sides[i].Close()
	}
	began()
	first := time.Time{}
	for ctx.Err() == nil {
		s, err := nextOf(&sides)
		if err != nil {
			return 0, err
		}
		if s == nil {
			continue
		}
		if first.IsZero() {
			first = s.next.Time
		}
		s.waits = false
		f := capturefile.Frame{Time: max(s.next.Time.Sub(first).Nanoseconds(), 0), Octets: s.next.Octets, Length: s.next.Length}
		if err := add(s == &sides[0], first, f); err != nil {
			return 0, err
		}
	}
	for i := range sides {
		if sides[i].Listener != nil {
			lost += sides[i].Lost()
		}
	}
	return lost, nil
}

// nextOf is the side with the earlier frame; nil if none arrived for a while.
func nextOf(sides *[2]heard) (*heard, error) {
	for i := range sides {
		s := &sides[i]
		if s.waits || s.Listener == nil {
			continue
		}
		var err error
		if s.next, s.waits, err = s.Receive(); err != nil {
			return nil, err
		}
	}
	switch a, b := &sides[0], &sides[1]; {
	case a.waits && (!b.waits || !b.next.Time.Before(a.next.Time)):
		return a, nil
	case b.waits:
		return b, nil
	}
	var wait []unix.PollFd
	for i := range sides {
		if sides[i].Listener != nil {
			wait = append(wait, unix.PollFd{Fd: int32(sides[i].FD), Events: unix.POLLIN})
		}
	}
	_, err := unix.Poll(wait, pollTime)
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	return nil, err
}
