// The worker thread: it loads the engine (Go, compiled to WebAssembly) and calls it for the page, a command at a time.
import "wasm_exec";

let waiting = []; // messages that came before the engine was ready
let run = (message) => waiting.push(message);

const often = 100; // ms: how often the page hears how much of a file was read

let command = 0, pass = 0; // the ID of the command that is carried out, and how often it has begun to read

const most = 1 << 20; // bytes: of a part

// partsOf gives the engine parts of files in one array, and tells the page how much was read. The engine reads each file several times, from the start each time.
const partsOf = (files) => {
  const into = new Uint8Array(most), size = files.reduce((sum, file) => sum + file.size, 0);
  let said = 0, begun = 0, done = 0; // files that were begun; bytes that were read in this pass
  const read = async (number, offset, length) => {
    if (offset === 0 && begun++ % files.length === 0) [pass, done] = [pass + 1, 0];
    const now = performance.now();
    if (now - said >= often) {
      said = now;
      self.postMessage({ id: command, progress: { pass, read: Math.min(done, size), size } });
    }
    try {
      const part = new Uint8Array(await files[number].slice(offset, offset + Math.min(length, most)).arrayBuffer());
      into.set(part);
      done += part.length;
      self.cnpgatePart(part.length, "");
    } catch (error) {
      self.cnpgatePart(0, `${files[number].name} can't be read: ${error.message}`);
    }
  };
  return { into, read };
};

self.ready = () => {
  // The engine answers one command after the other.
  run = ({ id, name, argument, files }) => self.cnpgate(name, argument, files && partsOf(files), () => ([command, pass] = [id, 0]), (text) => self.postMessage({ id, text }));
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
