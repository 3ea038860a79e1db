//go:build live && long && !nodpdk

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rounds is the number of slices of a side, and slice the frames of one.
const sandboxRounds, sandboxSlice = 200, 4000

// cpuTime is the time that a process's threads have had cores.
func cpuTime(t *testing.T, pid int) (ns int64) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ns += n
	}
	return ns
}

// arrived is the number of frames that an interface has received.
func arrived(t *testing.T, name string) int {
	t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return int(link.Attrs().Statistics.RxPackets)
}

// TestLiveSandboxCost prints what a frame costs a gateway with the sandbox, in proportion to one without, both forwarding in turn over net_af_packet, whose bursts are system
// calls. With other devices a worker makes none. It requires that all frames arrive; the proportion depends on the machine (run it with -v).
func TestLiveSandboxCost(t *testing.T) {
	program := liveBinary(t)
	enterNamespace(t)
	makeWire(t, "c", "d")
	pid, send := map[string]int{}, map[string]int{}
	in, out := map[string]string{"enforce": "a1", "off": "c1"}, map[string]string{"enforce": "b1", "off": "d1"}
	sides := []string{"enforce", "off"}
	for _, side := range sides {
		text := strings.NewReplacer("iface=a0", "iface="+strings.Replace(in[side], "1", "0", 1), "iface=b0", "iface="+strings.Replace(out[side], "1", "0", 1),
			"management: {", "management: {sandbox: "+side+", ").Replace(liveConfig)
		pid[side] = startWith(t, program, text).cmd.Process.Pid
		send[side] = newHost(t, in[side]).send
	}
	frame := make([]byte, 128)
	copy(frame, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x88\xb6")
	run := func(side string) float64 {
		before, had := arrived(t, out[side]), cpuTime(t, pid[side])
		for range sandboxSlice {
			for {
				err := unix.Send(send[side], frame, 0)
				if err == nil {
					break
				}
				if err != unix.ENOBUFS && err != unix.EAGAIN {
					t.Fatal(err)
				}
			}
		}
		for deadline := time.Now().Add(30 * time.Second); arrived(t, out[side])-before < sandboxSlice; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d of %d frames arrived", side, arrived(t, out[side])-before, sandboxSlice)
			}
		}
		return float64(cpuTime(t, pid[side])-had) / sandboxSlice
	}
	var ratios, costs []float64
	for i := range sandboxRounds {
		cost := map[string]float64{}
		for n := range sides { // each side is the first one as often
			side := sides[(n+i)%2]
			cost[side] = run(side)
		}
		ratios, costs = append(ratios, cost["off"]/cost["enforce"]), append(costs, cost["enforce"])
	}
	slices.Sort(ratios)
	slices.Sort(costs)
	n, around := len(ratios), int(math.Sqrt(float64(len(ratios)))) // ranks of the median's 95 % interval: n/2 -+ 1.96 * sqrt(n)/2
	t.Logf("forwarding with the sandbox is %.3f of without (median of %d pairs; 95 %% interval %.3f to %.3f), %.0f ns of core time a frame", ratios[n/2], n,
		ratios[n/2-around], ratios[n/2+around], costs[n/2])
}
