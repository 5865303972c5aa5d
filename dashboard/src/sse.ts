// Server-sent events, read from the body of a response. An EventSource hides what this page shows: the status of a
// refused request, signs of life, and how long the connection has been silent.

export interface Frame {
  readonly id: string;
  readonly kind: string;
  readonly data: string; // "" for a sign of life
}

/** Cut a text into frames. Return them, and the beginning of the next one. */
export function framesIn(text: string): [frames: Frame[], rest: string] {
  const parts = text.split("\n\n");
  const rest = parts.pop() ?? "";
  return [parts.map(frameOf), rest];
}

function frameOf(text: string): Frame {
  let id = "";
  let kind = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const value = line.slice(colon + 1).replace(/^ /, "");
    const name = line.slice(0, colon);
    if (name === "id") id = value;
    else if (name === "event") kind = value;
    else if (name === "data") data.push(value);
  }
  return { id, kind, data: data.join("\n") };
}

/** Read frames until the stream ends, or nothing has come for `silence` milliseconds. */
export async function* frames(body: ReadableStream<Uint8Array>, silence: number): AsyncGenerator<Frame[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read(), silence);
      if (done) return;
      const [found, left] = framesIn(rest + decoder.decode(value, { stream: true }));
      rest = left;
      if (found.length > 0) yield found;
    }
  } finally {
    void reader.cancel().catch(() => undefined); // it is over already
  }
}

function inTime<T>(promise: Promise<T>, limit: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("nothing came")), limit);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
