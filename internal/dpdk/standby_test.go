//go:build !nodpdk

package dpdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestAwait: it returns as soon as the last device is free, says meanwhile who has one, and holds off the next that waits until it is released.
func TestAwait(t *testing.T) {
	ports := []PortConfig{{Name: "a", Device: "net_tap0,iface=cnpt0"}, {Name: "b", Device: "net_tap1,iface=cnpt1"}}
	held, err := lockResource(resource{tapResource, "cnpt1"})
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	want := fmt.Sprintf("tap interface cnpt1 is in use by the gateway with process ID %d", os.Getpid())
	release, err := Await(t.Context(), ports, func(reason string) {
		if looks++; reason != want {
			t.Errorf("the reason is %q, want %q", reason, want)
		}
		if looks == 3 {
			if err := held.release(); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || looks != 3 {
		t.Fatalf("%v after %d looks, expected 3", err, looks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Await(ctx, ports, func(reason string) {
		if !strings.HasPrefix(reason, "the first place behind the gateway of tap interface cnpt0 is in use") {
			t.Errorf("the second one waits for %q", reason)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected that waiting was canceled", err)
	}
	locks, err := lockAll([]resource{{tapResource, "cnpt0"}, {tapResource, "cnpt1"}}) // as the first one opens the devices
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(release(), releaseAll(locks)); err != nil {
		t.Error(err)
	}
	release, err = Await(t.Context(), ports, func(reason string) { t.Errorf("waits for %q", reason) })
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// TestAwaitNothing: without a device that can have only one user there is nothing to wait for.
func TestAwaitNothing(t *testing.T) {
	for device, want := range map[string]string{"net_null0": "nothing to stand by for", "nonsense,": "device"} {
		if _, err := Await(t.Context(), []PortConfig{{Name: "a", Device: device}}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %q", device, err, want)
		}
	}
}
