// Requests to the service. A refusal becomes a Problem, whatever its cause, so that views have one thing to show.

import { forget, token } from "./session.js";

/** What RFC 9457 calls a problem: a sentence for people, and `kind` for the page. */
export class Problem extends Error {
  constructor(told) {
    super(told.detail || "The service refused, without a reason.");
    this.status = told.status ?? 0;
    this.kind = String(told.type ?? "").split(":").pop();
    this.faults = told.faults ?? [];
    this.request = told.request ?? "";
  }
}

const unreachable = () =>
  new Problem({
    type: "unreachable",
    detail: "The service cannot be reached; check the connection, and try again.",
  });

let whenRefused = () => {};
/** What to do when the token is no longer good. */
export function onSignedOut(action) {
  whenRefused = action;
}

function refused(status, text, quiet = false) {
  let told = { status };
  try {
    told = { ...told, ...JSON.parse(text) };
  } catch {
    told.detail = `The service answered with status ${status} and no explanation; try again later.`;
  }
  const problem = new Problem(told);
  if (problem.status === 401 && token() && !quiet) {
    forget();
    whenRefused(problem);
  }
  return problem;
}

async function send(method, path, { body, headers = {}, signal, anonymous = false } = {}) {
  const all = { ...headers };
  if (!anonymous) all.authorization = `Bearer ${token()}`;
  if (body !== undefined) all["content-type"] = "application/json";
  try {
    return await fetch(path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
}

/** A request and its JSON answer; null where there is none. `quiet`: a refused token is the caller's affair. */
export async function ask(method, path, options = {}) {
  const answer = await send(method, path, options);
  const text = await answer.text();
  if (!answer.ok) throw refused(answer.status, text, options.quiet);
  return text ? JSON.parse(text) : null;
}

export const get = (path, options) => ask("GET", path, options);
export const post = (path, body, options) => ask("POST", path, { body, ...options });

/** What anybody may ask; null if it is not offered here. */
export async function offered(path) {
  try {
    const answer = await send("GET", path, { anonymous: true });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

/** A file's bytes, for saving. */
export async function bytes(path) {
  const answer = await send("GET", path);
  if (!answer.ok) throw refused(answer.status, await answer.text());
  return answer.blob();
}

/** Upload a file as it is. XMLHttpRequest, because fetch tells nothing of how far it has come. */
export function upload(path, file, tell) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("authorization", `Bearer ${token()}`);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.upload.addEventListener(
      "progress",
      (event) => tell(event.lengthComputable ? event.loaded / event.total : null),
    );
    request.addEventListener("error", () => reject(unreachable()));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(refused(request.status, request.responseText));
    });
    request.send(file);
  });
}

const ENDED = ["done", "failed", "cancelled"];
const PATIENCE = 30;
const RETRY_MILLISECONDS = 1000;

/**
 * Follow a job to its end. Server-sent events over fetch, since EventSource cannot send a token. A connection that breaks
 * is made again: the job goes on without us.
 */
export async function follow(job, tell, signal) {
  let last = job;
  let failures = 0;
  tell(last);
  while (!ENDED.includes(last.state)) {
    try {
      const answer = await send("GET", `/jobs/${job.id}/events`, { signal });
      if (!answer.ok) throw refused(answer.status, await answer.text());
      for await (const event of events(answer.body)) {
        last = event;
        failures = 0;
        tell(last);
      }
    } catch (error) {
      const broken = !(error instanceof Problem) || error.kind === "unreachable";
      if (error.name === "AbortError" || !broken || ++failures > PATIENCE) throw error;
      await new Promise((wake) => setTimeout(wake, RETRY_MILLISECONDS));
    }
  }
  if (last.state !== "done") throw new Problem(last.problem ?? {});
  return last.result;
}

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    pending += value;
    const parts = pending.split("\n\n");
    pending = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").filter((line) => line.startsWith("data: "));
      if (data.length) yield JSON.parse(data.map((line) => line.slice(6)).join("\n"));
    }
  }
}

/** A key under which the service does a thing once, however often it is asked. */
export const freshKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
