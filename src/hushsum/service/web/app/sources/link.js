// Answers by a shared link: no token, no cookie, one function.

import { ask, bytes } from "../api.js";
import { fileSource } from "./file.js";

const byLink = { byLink: true, quiet: true };

/** The key in the address of a shared page, and whether it is shown as a widget. */
export function linkOf(path) {
  const found = /\/shared\/([A-Za-z0-9_-]+)(\/embed)?$/.exec(path);
  return found && { key: found[1], embedded: found[2] !== undefined };
}

export const sharedFunction = (key) => ask("GET", `/shared/${key}/function`, byLink);
export const sharedFile = (key) => bytes(`/shared/${key}/file`, byLink);

/** The same as `serviceSource`, for whoever has the link. */
export const linkSource = (key, response) =>
  fileSource(response, {
    file: () => sharedFile(key),
    query: (of, points, signal) => ask("POST", `/shared/${key}/query?of=${of}`, { ...byLink, body: { points }, signal }),
  });
