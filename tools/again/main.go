//go:build linux

// Again runs a command whose subject is time, as a test does with package ontime: it tries again if the command fails although only other work
// on the machine may be to blame. The exit status is 0 if the command succeeded, 1 if it failed, and 75 if that couldn't be found out.
package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

func main() {
	const inconclusive = 75 // EX_TEMPFAIL (sysexits.h)
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: again COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	for range ontime.Attempts {
		output, cores, err := ontime.Attempt(exec.Command(os.Args[1], os.Args[2:]...))
		fmt.Print(output)
		if err == nil {
			return
		}
		fmt.Println(err)
		fmt.Print(cores)
		if !cores.Busy() {
			os.Exit(1)
		}
		fmt.Println("inconclusive")
	}
	os.Exit(inconclusive)
}
