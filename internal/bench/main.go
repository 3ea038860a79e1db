// Bench is scripts/bench's measuring program: it measures cnpgate beside DPDK's own C programs, on the same devices, frames and
// core, in turn, and prints medians and ratios. It is not shipped. The first argument says what to do: "run" starts everything else
// as processes of its own (a process has one EAL in its life); the others are those of them that run cnpgate's code.
//
// A rate is that of the core's time: operations over the CPU time that the measured thread got. On an idle machine that is the
// wall clock's; on a busy one it doesn't count the time that others had the core.
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
		fail("usage: bench run|gateway|latency|table|memory|count [flags]; scripts/bench --help tells what there is")
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "bench:", why)
	os.Exit(1)
}
