// Who is signed in. The token lives in the open tabs alone, and is sent in a header: there is no cookie that another site
// could use, and nothing is written to the disk. A new tab gets it from one that is open, over a channel that only pages
// of this origin can join; pages of shared functions cannot, since they run in an origin of their own. With the last tab
// the token is gone, and signing out in one tab signs the others out too.

const KEY = "hushsum-token";
const WAIT_MILLISECONDS = 200;

let person = null;
let channel = null;
let takeOver = () => {};
let whenSignedOut = () => {};

export const token = () => sessionStorage.getItem(KEY);
export const me = () => person;
export const may = (scope) => person !== null && person.scopes.includes(scope);

export function keep(secret) {
  sessionStorage.setItem(KEY, secret);
}

export function known(response) {
  person = response;
}

/** Forget the token, here alone: it was wrong, or no longer works. */
export function forget() {
  person = null;
  sessionStorage.removeItem(KEY);
}

/** Forget the token in every tab that has it. */
export function leave() {
  channel?.postMessage({ kind: "leave", token: token() });
  forget();
}

/**
 * Answer other tabs from now on, and ask them for a token if there is none here; resolves when one has come, or none
 * has within a moment. `signedOut` is called when another tab signs out.
 */
export function joinTabs(signedOut) {
  whenSignedOut = signedOut;
  if (typeof BroadcastChannel !== "function") return Promise.resolve();
  channel = new BroadcastChannel("hushsum-tabs");
  channel.addEventListener("message", ({ data }) => heard(data));
  if (token()) return Promise.resolve();
  return new Promise((done) => {
    const timer = setTimeout(done, WAIT_MILLISECONDS);
    takeOver = (secret) => {
      clearTimeout(timer);
      keep(secret);
      done();
    };
    channel.postMessage({ kind: "ask" });
  });
}

function heard({ kind, token: secret }) {
  if (kind === "ask" && token() && person !== null) channel.postMessage({ kind: "answer", token: token() });
  else if (kind === "answer" && !token()) takeOver(secret);
  else if (kind === "leave" && token() && token() === secret) {
    forget();
    whenSignedOut();
  }
  if (token()) takeOver = () => {};
}
