// The page's side of the worker thread. call(command, argument) returns a promise of the answer's text; json() of what it says.

// inlined is the text of an element that a single-file page has in place of a file.
const inlined = (id) => document.getElementById(id)?.textContent;

const decoded = (base64) => {
  const text = atob(base64.trim()), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
};

// The page's policy (Trusted Types) takes the address of a worker thread from here only. A browser without them takes it as it is.
const trusted = globalThis.trustedTypes?.createPolicy("cnpgate", { createScriptURL: (url) => url });

export class Engine {
  // failed is called with a text if the engine can't be loaded, or ends.
  constructor(failed) {
    this.calls = new Map();
    this.last = 0;
    const script = inlined("engine-script");
    if (!script && location.protocol === "file:") {
      failed("A browser starts no worker thread from a file, so this page needs a server: any that serves this folder, “cnpgate replay --health --web”, or “cnpgate sim incast-10ms --web”. " +
        "“cnpgate sim incast-10ms --web=playground.html” writes a playground that works from a file.");
      return;
    }
    const url = script ? URL.createObjectURL(new Blob([script], { type: "text/javascript" })) : "engine.js";
    this.worker = new Worker(trusted ? trusted.createScriptURL(url) : url);
    this.worker.onerror = (e) => failed("The worker thread failed: " + (e.message || "it could not be loaded"));
    this.worker.onmessage = ({ data }) => {
      if (data.failed) return failed("The engine failed: " + data.failed);
      const call = this.calls.get(data.id);
      if (data.progress) return call.progress?.(data.progress);
      call.resolve(data.text);
      this.calls.delete(data.id);
    };
    const packed = script ? decoded(inlined("engine-wasm")) : null;
    this.worker.postMessage({ load: true, packed });
  }

  // call may give the engine files, which it can read later, too. progress is called with {pass, read, size} in bytes while it reads.
  call(command, argument = {}, progress, files) {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.calls.set(id, { resolve, progress });
      this.worker?.postMessage({ id, name: command, argument: JSON.stringify(argument), files });
    });
  }

  // end ends what the engine does, and the engine. Calls that wait are never answered.
  end() {
    this.worker?.terminate();
  }

  async json(command, argument, progress, files) {
    const answer = JSON.parse(await this.call(command, argument, progress, files));
    if (answer?.error) throw new Error(answer.error);
    return answer;
  }
}
