//go:build js && wasm

// Command wasm is the simulator for the page's worker thread.
package main

import "github.com/cnpgate/cnpgate/sim/scenarios"

func main() { println(len(scenarios.Names())) }
