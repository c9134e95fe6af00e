// Who is signed in. The token lives in this tab alone, and is sent in a header: there is no cookie that another site could use.

const KEY = "hushsum-token";

let person = null;

export const token = () => sessionStorage.getItem(KEY);
export const me = () => person;
export const may = (scope) => person !== null && person.scopes.includes(scope);

export function keep(secret) {
  sessionStorage.setItem(KEY, secret);
}

export function known(response) {
  person = response;
}

export function forget() {
  person = null;
  sessionStorage.removeItem(KEY);
}
