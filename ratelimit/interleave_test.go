//go:build interleave

package ratelimit

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/interleave"
)

// allowed runs several threads that each ask a limit for one event, and checks how many it allows.
func allowed(t *testing.T, threads, expected int, limit func() (allow func() bool)) {
	interleave.Check(t, false, func() ([]func(), func() string) {
		allow, n := limit(), 0
		var all []func()
		for range threads {
			all = append(all, func() {
				if allow() {
					n++
				}
			})
		}
		return all, func() string {
			if n != expected {
				return fmt.Sprintf("%d events were allowed, expected %d", n, expected)
			}
			return ""
		}
	})
}

// TestInterleaveLimits: threads that share a limit get together what it allows, not more and not less.
func TestInterleaveLimits(t *testing.T) {
	host := packet.Host{Addr: packet.Addr{Lo: 1}}
	t.Run("rate", func(t *testing.T) {
		allowed(t, 3, 2, func() func() bool {
			var tat atomic.Int64
			return func() bool { return PerSecond(200).Allow(&tat, 1e9) }
		})
	})
	t.Run("destination", func(t *testing.T) {
		allowed(t, 3, 2, func() func() bool {
			d, err := New(make([]byte, Size(1)), 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			return func() bool { return d.Allow(PerSecond(200), host, 1e9) == Allowed }
		})
	})
}

// TestInterleaveRefund: an event that is given back while another one is asked for may happen once more, not more often.
func TestInterleaveRefund(t *testing.T) {
	host, rate := packet.Host{Addr: packet.Addr{Lo: 1}}, PerSecond(200) // two at once
	interleave.Check(t, false, func() ([]func(), func() string) {
		d, err := New(make([]byte, Size(1)), 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		d.Allow(rate, host, 1e9)
		n := 0
		allow := func() {
			if d.Allow(rate, host, 1e9) == Allowed {
				n++
			}
		}
		return []func(){func() { d.Refund(rate, host) }, allow}, func() string {
			for range 3 {
				allow()
			}
			if n != 2 {
				return fmt.Sprintf("%d events were allowed, expected 2", n)
			}
			return ""
		}
	})
}
