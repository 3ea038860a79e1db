//go:build js && wasm

// Command wasm runs scenarios and reads captures in the page's worker thread: it gives it the function "cnpgate" of a command, its argument in JSON, the
// parts of files for a command that reads them, and two functions: the first is called when the command begins, the second with JSON when it has ended: what is asked
// for, or {"error": text}.
package main

import (
	"encoding/json"
	"fmt"
	"syscall/js"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/sim/scenarios"
	"github.com/cnpgate/cnpgate/web/engine"
)

func main() {
	r := &runner{now: js.Global().Get("performance")}
	commands := make(chan []js.Value, mostWaiting)
	js.Global().Set("cnpgate", js.FuncOf(func(_ js.Value, args []js.Value) any {
		commands <- args
		return nil
	}))
	js.Global().Call("ready")
	for c := range commands { // reading a file takes many turns of the browser's loop of events: no other command may begin meanwhile
		c[3].Invoke()
		c[4].Invoke(r.answer(c[0].String(), []byte(c[1].String()), c[2]))
	}
}

// mostWaiting is how many commands may wait: the page sends the next one when it has the answer, but for a few clicks.
const mostWaiting = 1024

// answer carries out a command and returns JSON.
func (r *runner) answer(command string, argument []byte, from js.Value) string {
	answer, err := r.do(command, argument, from)
	if err != nil {
		answer = map[string]string{"error": err.Error()}
	}
	if text, ok := answer.(string); ok {
		return text
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return fmt.Sprintf(`{"error": %q}`, err)
	}
	return string(text)
}

// runner has the scenario that runs, and the capture that was read.
type runner struct {
	engine    *engine.Engine
	setup     *engine.Setup
	now       js.Value
	diagnosis *replay.Diagnosis
}

// do carries out a command.
func (r *runner) do(command string, argument []byte, from js.Value) (any, error) {
	switch command {
	case "menu":
		return engine.Menu(), nil
	case "start":
		return r.start(argument)
	case "controls":
		return controls(argument)
	case "diagnose":
		return r.diagnose(argument, from)
	case "trace":
		return r.trace(argument)
	}
	if r.engine == nil {
		return nil, fmt.Errorf("%s: no scenario has been started", command)
	}
	switch command {
	case "advance":
		return r.advance(argument)
	case "results":
		text, err := r.engine.Results()
		return string(text), err
	case "texts":
		return r.engine.Texts()
	case "decode":
		var a struct {
			Pane   int
			Number uint64
		}
		if err := json.Unmarshal(argument, &a); err != nil {
			return nil, err
		}
		return r.engine.Decode(a.Pane, a.Number)
	case "explain":
		var a struct{ Pane, Host int }
		if err := json.Unmarshal(argument, &a); err != nil {
			return nil, err
		}
		return r.engine.Explain(a.Pane, a.Host)
	}
	return nil, fmt.Errorf("there is no command %q", command)
}

func (r *runner) start(argument []byte) (any, error) {
	var spec engine.Spec
	if err := json.Unmarshal(argument, &spec); err != nil {
		return nil, err
	}
	r.engine, r.setup = nil, nil // before memory for the next one is needed
	e, err := engine.New(&spec)
	if err != nil {
		return nil, err
	}
	r.engine, r.setup = e, e.Setup()
	return r.setup, nil
}

// advance runs up to a virtual time (ns), for a number of milliseconds at most.
func (r *runner) advance(argument []byte) (any, error) {
	var a struct {
		Until  int64
		Budget float64
	}
	if err := json.Unmarshal(argument, &a); err != nil {
		return nil, err
	}
	end := r.now.Call("now").Float() + a.Budget
	_, err := r.engine.Advance(a.Until, func() bool { return r.now.Call("now").Float() < end })
	if err != nil {
		return nil, err
	}
	return r.engine.Frame(r.setup), nil
}

// controls lists the controls of a scenario, which is given by its name or its text.
func controls(argument []byte) (any, error) {
	var spec engine.Spec
	if err := json.Unmarshal(argument, &spec); err != nil {
		return nil, err
	}
	text := []byte(spec.Text)
	if spec.Text == "" {
		text, _ = scenarios.Find(spec.Scenario)
	}
	return engine.Controls(text)
}
