// The worker thread: it loads the engine (Go, compiled to WebAssembly) and calls it for the page, a command at a time.
import "wasm_exec";

let waiting = []; // messages that came before the engine was ready
let run = (message) => waiting.push(message);

const often = 100; // ms: how often the page hears how much of a file was read

let command = 0, pass = 0; // the ID of the command that is carried out, and how often it has begun to read

const most = 1 << 20; // bytes: of a part

// partsOf gives the engine parts of a file in one array, and tells the page how much was read. The engine reads a file several times, from the start each time.
const partsOf = (file) => {
  const into = new Uint8Array(most);
  let said = 0;
  const read = async (offset, length) => {
    if (offset === 0) pass++;
    const now = performance.now();
    if (now - said >= often) {
      said = now;
      self.postMessage({ id: command, progress: { pass, read: offset, size: file.size } });
    }
    try {
      const part = new Uint8Array(await file.slice(offset, offset + Math.min(length, most)).arrayBuffer());
      into.set(part);
      self.cnpgatePart(part.length, "");
    } catch (error) {
      self.cnpgatePart(0, `the file can't be read: ${error.message}`);
    }
  };
  return { into, read };
};

self.ready = () => {
  // The engine answers one command after the other.
  run = ({ id, name, argument, file }) => self.cnpgate(name, argument, file && partsOf(file), () => ([command, pass] = [id, 0]), (text) => self.postMessage({ id, text }));
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
  throw new Error("the engine has ended");
};

self.onmessage = ({ data }) => {
  if (data.load) load(data.packed).catch((error) => self.postMessage({ failed: String(error.message ?? error) }));
  else run(data);
};
