// Requests to the service. Every failure becomes a Problem, so that views handle one kind of error.
import { forget, token } from "./session.js";

// The page may stand below a path of a proxy's, so addresses are relative to where its scripts come from.
const ROOT = new URL("../../", import.meta.url);

/** The address of a route, given by its path in the service. */
export const addressOf = (path) => new URL(path.replace(/^\//, ""), ROOT).href;

/** What RFC 9457 calls a problem: a sentence for people, and `kind` for the page. */
export class Problem extends Error {
  constructor(response) {
    super(response.detail || "The service refused the request without a reason.");
    this.status = response.status ?? 0;
    this.kind = String(response.type ?? "").split(":").pop();
    this.faults = response.faults ?? [];
    this.parameter = response.error?.parameter ?? null;
    // What to give instead, by the names of fields; a remedy is a phrase, and these are parts of it.
    this.advised = [response.error?.remedy ?? []].flat().map((each) => each.argument).filter(Boolean);
    this.request = response.request ?? "";
    this.warnings = response.warnings ?? [];
    this.retryAfter = response.retryAfter ?? 0;
  }
}

const unreachable = () =>
  new Problem({ type: "unreachable", detail: "The service cannot be reached; check the connection, and try again." });

let whenRefused = () => {};
/** What to do when the token is no longer valid. */
export function onSignedOut(action) {
  whenRefused = action;
}

function refused(status, text, quiet = false, headers = null) {
  let response = { status, retryAfter: Number(headers?.get("retry-after") ?? 0) || 0 };
  try {
    response = { ...response, ...JSON.parse(text) };
  } catch {
    response.detail = `The service answered with status ${status} and no explanation; try again later.`;
  }
  const problem = new Problem(response);
  if (problem.status === 401 && !quiet && token()) {
    forget();
    whenRefused(problem);
  }
  return problem;
}

async function send(method, path, { body, headers = {}, signal, anonymous = false, byLink = false } = {}) {
  const all = { ...headers };
  const text = body === undefined ? undefined : JSON.stringify(body);
  if (!anonymous && !byLink) all.authorization = `Bearer ${token()}`;
  if (text !== undefined && !byLink) all["content-type"] = "application/json";
  try {
    return await fetch(addressOf(path), {
      method,
      headers: all,
      // The page of a shared function has another origin. Bytes have no content type, so the browser sends them at once.
      body: byLink && text !== undefined ? new TextEncoder().encode(text) : text,
      signal,
      credentials: byLink ? "omit" : "same-origin",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
}

/** A request and its JSON answer; null where there is none. `quiet`: the caller handles a refused token. */
export async function ask(method, path, options = {}) {
  const answer = await send(method, path, options);
  const text = await answer.text();
  if (!answer.ok) throw refused(answer.status, text, options.quiet);
  return text ? JSON.parse(text) : null;
}

export const get = (path, options) => ask("GET", path, options);
export const post = (path, body, options) => ask("POST", path, { body, ...options });

/** A public route; null if this service does not have it. */
export async function offered(path) {
  try {
    const answer = await send("GET", path, { anonymous: true });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

/** A file's bytes, for saving. */
export async function bytes(path, options) {
  const answer = await send("GET", path, options);
  if (!answer.ok) throw refused(answer.status, await answer.text());
  return answer.blob();
}

/** Upload a file as it is. XMLHttpRequest, because fetch reports no upload progress. */
export function upload(path, file, report) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", addressOf(path));
    request.setRequestHeader("authorization", `Bearer ${token()}`);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => report(event.lengthComputable ? event.loaded / event.total : null));
    request.addEventListener("error", () => reject(unreachable()));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(refused(request.status, request.responseText));
    });
    request.send(file);
  });
}

const ENDED = ["done", "failed", "cancelled"];
const RETRY_MILLISECONDS = 1000;
const LONGEST_RETRY_MILLISECONDS = 30000;
const PATIENCE_MILLISECONDS = 3600000;

/** Whether a problem may be gone in a while: no connection, too many requests, a service that restarts. */
const passes = (problem) =>
  !(problem instanceof Problem) || problem.kind === "unreachable" || problem.status === 429 ||
  problem.status >= 500;

/** How long to wait before the next attempt: twice as long each time, never less than the service requests. */
export function pauseAfter(failures, problem, chance = Math.random()) {
  const longest = Math.min(LONGEST_RETRY_MILLISECONDS, RETRY_MILLISECONDS * 2 ** Math.min(failures - 1, 10));
  // Pages that failed together should not come back together.
  return Math.max(longest * (0.5 + chance / 2), 1000 * (problem.retryAfter ?? 0));
}

/**
 * Follow a job to its end. Server-sent events over fetch, since EventSource cannot send a token. A connection that breaks,
 * or that the service has no room for, is reopened: the job continues meanwhile, and what it releases is paid for.
 */
export async function follow(job, report, signal) {
  let last = job;
  let failures = 0;
  let since = Date.now();
  report(last);
  while (!ENDED.includes(last.state)) {
    try {
      const answer = await send("GET", `/jobs/${job.id}/events`, { signal });
      if (!answer.ok) throw refused(answer.status, await answer.text(), false, answer.headers);
      for await (const event of events(answer.body)) {
        last = event;
        failures = 0;
        since = Date.now();
        report(last);
      }
    } catch (error) {
      const given = error.name === "AbortError" || !passes(error);
      if (given || Date.now() - since > PATIENCE_MILLISECONDS) throw error;
      await sleep(pauseAfter(++failures, error), signal);
    }
  }
  if (last.state !== "done") throw Object.assign(new Problem(last.problem ?? {}), { paid: last.paying });
  return last.result;
}

/** Wait, unless the signal aborts. */
function sleep(milliseconds, signal) {
  return new Promise((wake, abort) => {
    const timer = setTimeout(wake, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      abort(signal.reason);
    }, { once: true });
  });
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

/** A key under which the service does a thing once, however often the request is sent. */
export const freshKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
