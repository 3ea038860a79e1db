// Requests to the server that serves the page: lists as JSON, and what changes as server-sent events. EventSource can't send the token, so the events are
// read with fetch.
let token = "";

export const setToken = (text) => (token = text);

// Refused is the error of an answer that isn't 200.
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const ask = async (path, signal) => {
  const answer = await fetch(path, { headers: token ? { Authorization: "Bearer " + token } : {}, signal, cache: "no-store", credentials: "omit" });
  if (answer.ok) return answer;
  let text = answer.statusText;
  try {
    text = (await answer.json()).error;
  } catch {
    // not an answer of the server itself
  }
  throw new Refused(answer.status, text);
};

// get reads a list. Parameters that are null, undefined or "" are left out.
export const get = async (path, parameters = {}, signal) => {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, v]) => v != null && v !== ""));
  return (await ask(path + (query.size ? "?" + query : ""), signal)).json();
};

const maxText = 64 << 20; // characters of an event

// events calls each(kind, value, time) for each event, with the server's time in ms since 1970, until the connection ends or the signal is given.
export const events = async (path, signal, each) => {
  const reader = (await ask(path, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    if (text.length > maxText) throw new Error("an event is too long");
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const [kind, time, data] = text.slice(0, end).split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
      text = text.slice(end + 2);
      each(kind, JSON.parse(data), Number(time));
    }
  }
};
