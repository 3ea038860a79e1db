package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lineOverhead is what a frame without FCS takes on the line beside its octets: FCS, preamble and gap (IEEE 802.3).
const lineOverhead = 24

// send plays the hosts' frames on an interface at up to a rate in bits a second on the line.
func send(hosts []host, iface string, rate float64, length time.Duration) error {
	fd, to, err := open(iface)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	s := newSchedule(hosts, turnOf(length))
	start, due, frames := time.Now(), 0.0, 0
	told := 1
	for {
		now := time.Since(start)
		if now >= length {
			fmt.Fprintf(os.Stderr, "  sent %d frames in %.1f s\n", frames, length.Seconds())
			return nil
		}
		if now >= time.Duration(told)*time.Second {
			fmt.Fprintf(os.Stderr, "  %d s: %d frames\n", told, frames)
			told++
		}
		// After a stall, what was missed is left out: a burst would try the kernel's buffers, not the gateway.
		due = max(due, now.Seconds()-0.02)
		for due <= now.Seconds() {
			f, _ := s.frame(now)
			if err := sendto(fd, f, to); err != nil {
				return fmt.Errorf("sending on %s: %w", iface, err)
			}
			frames++
			due += float64(8*(len(f)+lineOverhead)) / (rate * loadAt(now, length))
		}
		time.Sleep(500 * time.Microsecond)
	}
}

// open makes a socket that only sends: protocol 0 receives nothing.
func open(iface string) (int, unix.Sockaddr, error) {
	n, err := net.InterfaceByName(iface)
	if err != nil {
		return 0, nil, fmt.Errorf("interface %q: %w", iface, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("packet socket (needs root): %w", err)
	}
	return fd, &unix.SockaddrLinklayer{Ifindex: n.Index}, nil
}

// sendto sends a frame, and tries again while the kernel has no room for it.
func sendto(fd int, frame []byte, to unix.Sockaddr) error {
	for {
		err := unix.Sendto(fd, frame, 0, to)
		if !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
}
