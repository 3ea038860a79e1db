// The worker thread: it loads the simulator (Go, compiled to WebAssembly) and calls it for the page, a command at a time.
import "wasm_exec";

let waiting = []; // messages that came before the simulator was ready
let run = (message) => waiting.push(message);

self.ready = () => {
  run = ({ id, command, argument }) => self.postMessage({ id, text: self.cnpgate(command, argument) });
  waiting.forEach((message) => run(message));
  waiting = [];
};

const load = async (packed) => {
  const source = packed ? new Response(packed) : await fetch("engine.wasm.gz");
  if (!source.ok) throw new Error(`engine.wasm.gz: ${source.status} ${source.statusText}`);
  const code = new Response(source.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": "application/wasm" } });
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(code, go.importObject);
  await go.run(instance);
  throw new Error("the simulator has ended");
};

self.onmessage = ({ data }) => {
  if (data.load) load(data.packed).catch((error) => self.postMessage({ failed: String(error.message ?? error) }));
  else run(data);
};
