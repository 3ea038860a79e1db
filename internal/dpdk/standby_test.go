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
	first := NewStandby(Config{Ports: ports})
	err = first.Await(t.Context(), func(reason string) error {
		if looks++; reason != want {
			t.Errorf("the reason is %q, want %q", reason, want)
		}
		if looks == 3 {
			return held.release()
		}
		return nil
	})
	if err != nil || looks != 3 {
		t.Fatalf("%v after %d looks, expected 3", err, looks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	second := NewStandby(Config{Ports: ports})
	err = second.Await(ctx, func(reason string) error {
		if !strings.HasPrefix(reason, "the first place behind the gateway of tap interface cnpt0 is in use") {
			t.Errorf("the second one waits for %q", reason)
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected that waiting was canceled", err)
	}
	locks, err := lockAll([]resource{{tapResource, "cnpt0"}, {tapResource, "cnpt1"}}) // as the first one opens the devices
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Close(), releaseAll(locks)); err != nil {
		t.Error(err)
	}
	err = second.Await(t.Context(), func(reason string) error { t.Errorf("waits for %q", reason); return nil })
	if err := errors.Join(err, second.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestAwaitNothing: without a device that can have only one user there is nothing to wait for.
func TestAwaitNothing(t *testing.T) {
	for device, want := range map[string]string{"net_null0": "nothing to stand by for", "nonsense,": "device"} {
		if err := NewStandby(Config{Ports: []PortConfig{{Name: "a", Device: device}}}).Await(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %q", device, err, want)
		}
	}
}
