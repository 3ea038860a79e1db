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
	said, outcome := ontime.Judge(func() *ontime.Attempt { return ontime.Run(exec.Command(os.Args[1], os.Args[2:]...)) }, func(a *ontime.Attempt) {
		fmt.Printf("%s%v\n%vinconclusive, tried again\n", a.Output, a.Err, a.Cores)
	})
	fmt.Print(said)
	switch outcome {
	case ontime.Failed:
		os.Exit(1)
	case ontime.Inconclusive:
		os.Exit(inconclusive)
	}
}
