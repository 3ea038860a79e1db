import "wasm_exec";
