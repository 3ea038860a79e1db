package control

import (
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"
)

// PanicStatus is the status that the process exits with if a worker panics (EX_SOFTWARE of sysexits.h).
const PanicStatus = 70

// panicLogTime is how long the log may take for the line about a panic.
const panicLogTime = 100 * time.Millisecond

// maxStack bounds the stack in the log, bytes.
const maxStack = 4096

// endAtPanic is deferred by a worker's goroutine. It logs a panic with the packet that the worker was handling, and ends the process at once: the
// worker's state is unreliable, and a standby gateway or a bypass must take over without delay.
func (g *gateway) endAtPanic(worker, core int) {
	reason := recover()
	if reason == nil {
		return
	}
	time.AfterFunc(panicLogTime, func() { os.Exit(PanicStatus) }) // a log that nobody reads must not keep the devices from another gateway
	stack := debug.Stack()
	event := g.options.Log.WithLevel(zerolog.FatalLevel).Int("worker", worker).Int("core", core).Str("panic", fmt.Sprint(reason)).
		Bytes("stack", stack[:min(len(stack), maxStack)])
	if f, ok := g.plane.Worker(worker).InHand(); ok {
		event = event.Str("port", g.started.Ports[f.Port].Name).Int("burst", f.Burst)
		if f.Place >= 0 {
			event = event.Int("place", f.Place).Uint32("length", f.Length).Str("packet", hex.EncodeToString(f.Bytes))
		}
	}
	event.Msg("A worker panicked. The gateway ends at once. This is a bug in cnpgate: please report it with this line.")
	os.Exit(PanicStatus)
}
