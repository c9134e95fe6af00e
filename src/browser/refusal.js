// Why a file, or a query, is not read: one sentence for people.

/** A file that is damaged, of another kind or version, or of a form that this reader does not answer. */
export class FileRefused extends Error {
  /** @param {string} sentence what is wrong and what helps
   *  @param {"damaged" | "unsupported" | "other"} kind */
  constructor(sentence, kind = "damaged") {
    super(sentence);
    this.name = "FileRefused";
    this.kind = kind;
  }
}

/** A query that the function does not take. */
export class QueryRefused extends Error {
  constructor(sentence) {
    super(sentence);
    this.name = "QueryRefused";
  }
}

/** A header that nothing could have written, though its checksum holds. */
export function nonsense() {
  return new FileRefused("The file's header makes no sense, though its checksum holds; ask who wrote it.");
}

/** A file that may be fine, but that this reader does not answer. */
export function unsupported(what) {
  return new FileRefused(`${what}; read the file with Hushsum for Python.`, "unsupported");
}
