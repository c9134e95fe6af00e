// Answers by a shared link: no token, no cookie, one function.
import { ask, bytes, Problem } from "../api.js";
import { fileSource } from "./file.js";

const byLink = { byLink: true, quiet: true };

/** The key in the address of a shared page, and whether it is shown as a widget. */
export function linkOf(path) {
  const found = /\/shared\/([A-Za-z0-9_-]+)(\/embed)?$/.exec(path);
  return found && { key: found[1], embedded: found[2] !== undefined };
}

/** What a reader can do where a link has ended; the service answers as for one that never was. */
const ENDED = { type: "not-found", status: 404, detail: "this link was revoked, has expired, or is incomplete; ask whoever sent it" };

async function ofLink(answer) {
  try {
    return await answer;
  } catch (problem) {
    throw problem.status === 404 ? new Problem(ENDED) : problem;
  }
}

export const sharedFunction = (key) => ofLink(ask("GET", `/shared/${key}/function`, byLink));
export const sharedFile = (key) => ofLink(bytes(`/shared/${key}/file`, byLink));

/** The same as `serviceSource`, for whoever has the link. */
export const linkSource = (key, response) =>
  fileSource(response, {
    file: () => sharedFile(key),
    query: (of, points, signal, level, nonnegative = false) =>
      ofLink(ask("POST", `/shared/${key}/query?of=${of}&level=${level}&nonnegative=${nonnegative}`, { ...byLink, body: { points }, signal })),
  });
