// Answers from the service, for whoever is signed in.
import { bytes, post } from "../api.js";
import { fileSource } from "./file.js";

/**
 * The source of a function's answers. `answer(of, points, {signal, lattice, together, glance})` resolves to lists with one
 * entry per point (`value`, `stderr`, `lower`, `upper`; of models `prediction` and what else they report). `lattice` says
 * that the points are all those of a picture: {axes, steps, fixed}; intervals hold for all points `together` or for each; a
 * `glance` is not worth a download. Of a function that has one, the `nonnegative` version answers. `origin()` is a sentence about where the last answers came from, or null. Explorers know
 * sources by these two alone.
 */
export const serviceSource = (response) =>
  fileSource(response, {
    file: () => bytes(`/functions/${response.id}/file`),
    query: (of, points, signal, level, nonnegative = false) =>
      post(`/functions/${response.id}/query?of=${of}&level=${level}&nonnegative=${nonnegative}`, { points }, { signal }),
  });
