// Bench is the measuring program of scripts/bench: it measures cnpgate and DPDK's own C programs in turn, on the same devices, frames and
// core, and prints medians and ratios. It is not shipped. With the first argument "run" it starts all others as processes (a process has
// one EAL in its life); its other commands are those processes that run cnpgate's code.
//
// A rate is operations divided by the CPU time of the measured thread. On an idle machine that is the same as wall-clock time; on a busy
// one it excludes the time that other processes used the core.
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func([]string) error{
		"run": run, "gateway": gateway, "latency": latency, "table": table, "memory": memory, "count": count,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fail("usage: bench run|gateway|latency|table|memory|count [flags]; see scripts/bench --help")
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "bench:", why)
	os.Exit(1)
}
