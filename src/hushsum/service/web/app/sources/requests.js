// The same query for a terminal or a program. A token is never written out: its place is a variable.
import { addressOf } from "../api.js";

const shell = (text) => `'${text.replace(/'/g, `'\\''`)}'`;
const python = (value) => JSON.stringify(value);
const points = (shown) => [shown?.point ?? []];

/** For whoever has a token. */
export function serviceRequests({ id, name, model }) {
  const root = addressOf("/").replace(/\/$/, "");
  return {
    curl: (shown) =>
      `curl -s ${shell(`${root}/functions/${id}/query${shown ? `?of=${shown.of}` : ""}`)} \\\n` +
      `  -H "Authorization: Bearer $HUSHSUM_TOKEN" -H 'Content-Type: application/json' \\\n` +
      `  -d ${shell(JSON.stringify({ points: points(shown) }))}\n`,
    Python: (shown) =>
      `import os\n\nimport hushsum as hs\n\nservice = hs.connect(${python(root)}, os.environ["HUSHSUM_TOKEN"])\n` +
      `f = service.${model ? "model" : "function"}(${python(id)})  # ${name.replace(/[\r\n]/g, " ")}\n` +
      `answer = f.query(${python(points(shown))}${shown && !model ? `, of=${python(shown.of)}` : ""})\n` +
      "print(answer.value, answer.stderr)\n",
  };
}

/** For whoever has a link. */
export function linkRequests(key, { model }) {
  const address = addressOf(`/shared/${key}`);
  return {
    curl: (shown) =>
      `curl -s ${shell(`${address}/query${shown ? `?of=${shown.of}` : ""}`)} \\\n` +
      `  -H 'Content-Type: application/json' -d ${shell(JSON.stringify({ points: points(shown) }))}\n`,
    Python: (shown) =>
      `import hushsum as hs\n\nf = hs.client.open_link(${python(address)})\n` +
      `answer = f.query(${python(points(shown))}${shown && !model ? `, of=${python(shown.of)}` : ""})\n` +
      "print(answer.value, answer.stderr)\n",
  };
}
