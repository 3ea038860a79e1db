// The page's side of the worker thread. call(command, argument) returns a promise of the answer's text; json() of what it says.

// inlined is the text of an element that a single-file page has in place of a file.
const inlined = (id) => document.getElementById(id)?.textContent;

const decoded = (base64) => {
  const text = atob(base64.trim()), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
};

export class Engine {
  // failed is called with a text if the simulator can't be loaded, or ends.
  constructor(failed) {
    this.calls = new Map();
    this.last = 0;
    const script = inlined("engine-script");
    if (!script && location.protocol === "file:") {
      failed("A browser starts no worker thread from a file, so this page needs a server: run “cnpgate sim incast-10ms --web”. " +
        "“cnpgate sim incast-10ms --web=playground.html” writes a page that works from a file.");
      return;
    }
    const url = script ? URL.createObjectURL(new Blob([script], { type: "text/javascript" })) : "engine.js";
    this.worker = new Worker(url);
    this.worker.onerror = (e) => failed("The worker thread failed: " + (e.message || "it could not be loaded"));
    this.worker.onmessage = ({ data }) => {
      if (data.failed) return failed("The simulator could not be loaded: " + data.failed);
      this.calls.get(data.id)(data.text);
      this.calls.delete(data.id);
    };
    const packed = script ? decoded(inlined("engine-wasm")) : null;
    this.worker.postMessage({ load: true, packed });
  }

  call(command, argument = {}) {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.calls.set(id, resolve);
      this.worker?.postMessage({ id, command, argument: JSON.stringify(argument) });
    });
  }

  async json(command, argument) {
    const answer = JSON.parse(await this.call(command, argument));
    if (answer?.error) throw new Error(answer.error);
    return answer;
  }
}
