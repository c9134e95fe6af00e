// Processor time of the reader for web pages, in Node: reading a file, the first picture, and pictures of some sizes.
// node benchmarks/service/reader_speed.mjs f.hush ...
import { readFileSync } from "node:fs";
import { readHush } from "../src/browser/released_function.js";

const SIZES = [16, 24, 36, 54, 80, 112, 160];

function milliseconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

for (const name of process.argv.slice(2)) {
  const begun = milliseconds();
  const f = readHush(readFileSync(name));
  const read = milliseconds();
  const picture = (size, move) => {
    const fixed = Array.from(f.box.centre);
    if (f.dim > 2) fixed[2] += 0.1 * move * (f.box.high[2] - f.box.low[2]);
    const steps = [0, 1].map((axis) => {
      const [low, high] = [f.box.low[axis], f.box.high[axis]];
      return Array.from({ length: size }, (_, i) => low + ((high - low) * i) / (size - 1));
    });
    return f.picture([0, 1], steps, fixed, { of: "sum", simultaneous: true });
  };
  picture(SIZES[0], 0);
  const first = milliseconds();
  const times = {};
  for (const size of SIZES) {
    for (let k = 0; k < 3; k += 1) picture(size, k / 10);
    const start = milliseconds();
    for (let k = 0; k < 8; k += 1) picture(size, k / 8);
    times[size] = Number(((milliseconds() - start) / 8).toFixed(1));
  }
  console.log(
    JSON.stringify({ name, table: f.basis, shape: f.shape, read: read - begun, "first picture": first - read, pictures: times }),
  );
}
