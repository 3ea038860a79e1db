package health

import (
	"fmt"
	"os"
)

var Debug = os.Getenv("HDEBUG") != ""

func dbg(f string, a ...any) {
	if Debug {
		fmt.Printf(f+"\n", a...)
	}
}
