// Least squares with coefficients that are not negative: Stark and Parker's algorithm with the starting point of SciPy's
// `lsq_linear(method="bvls")`, so that both find the same coefficients.

const TOLERANCE = 1e-10;

/** The coefficients x ≥ 0 that minimise |A·x − b|; A is a list of columns. */
export function nonnegativeLeastSquares(columns, b) {
  const n = columns.length;
  const first = leastSquares(columns, b);
  const x = Float64Array.from(first, (value) => Math.max(value, 0.0));
  const bound = first.map((value) => value <= 0.0);
  const free = () => [...bound.keys()].filter((i) => !bound[i]);
  const solve = (set) => leastSquares(set.map((i) => columns[i]), b);
  let set = free();
  let iterations = 0;
  while (set.length > 0) {
    iterations += 1;
    const z = solve(set);
    set.forEach((i, place) => {
      bound[i] = z[place] < 0.0;
      x[i] = Math.max(z[place], 0.0);
    });
    const kept = set.filter((i) => !bound[i]);
    if (kept.length === set.length) break;
    set = kept;
  }
  let state = residual(columns, x, b);
  for (let end = n + iterations; iterations < end; iterations += 1) {
    if (violation(state.gradient, bound) < TOLERANCE) break;
    let best = -1;
    for (let i = 0; i < n; i += 1) {
      const gain = bound[i] ? -state.gradient[i] : 0.0;
      if (best < 0 || gain > (bound[best] ? -state.gradient[best] : 0.0)) best = i;
    }
    bound[best] = false;
    for (;;) {
      set = free();
      const z = solve(set);
      let [alpha, out] = [Infinity, -1];
      set.forEach((i, place) => {
        if (z[place] >= 0.0) return;
        const step = -x[i] / (z[place] - x[i]);
        if (step < alpha) [alpha, out] = [step, i];
      });
      if (out < 0) {
        set.forEach((i, place) => (x[i] = z[place]));
        break;
      }
      set.forEach((i, place) => (x[i] = (1.0 - alpha) * x[i] + alpha * z[place]));
      bound[out] = true;
    }
    const next = residual(columns, x, b);
    const little = state.cost - next.cost < TOLERANCE * state.cost;
    state = next;
    if (little) break;
  }
  return x;
}

function residual(columns, x, b) {
  const r = Float64Array.from(b, (value) => -value);
  columns.forEach((column, i) => column.forEach((value, row) => (r[row] += value * x[i])));
  const gradient = columns.map((column) => column.reduce((sum, value, row) => sum + value * r[row], 0.0));
  return { gradient, cost: 0.5 * r.reduce((sum, value) => sum + value * value, 0.0) };
}

function violation(gradient, bound) {
  return Math.max(...gradient.map((value, i) => (bound[i] ? -value : Math.abs(value))));
}

/** Householder's least squares, columns in the given order. */
function leastSquares(columns, b) {
  const work = columns.map((column) => Float64Array.from(column));
  const right = Float64Array.from(b);
  const rows = b.length;
  const n = work.length;
  const diagonal = new Float64Array(n);
  for (let k = 0; k < n; k += 1) {
    const column = work[k];
    let norm = 0.0;
    for (let i = k; i < rows; i += 1) norm = Math.hypot(norm, column[i]);
    const alpha = column[k] > 0.0 ? -norm : norm;
    diagonal[k] = alpha;
    column[k] -= alpha;
    let square = 0.0;
    for (let i = k; i < rows; i += 1) square += column[i] * column[i];
    if (square === 0.0) continue;
    for (const other of [...work.slice(k + 1), right]) {
      let dot = 0.0;
      for (let i = k; i < rows; i += 1) dot += column[i] * other[i];
      const scale = (2.0 * dot) / square;
      for (let i = k; i < rows; i += 1) other[i] -= scale * column[i];
    }
  }
  const x = new Float64Array(n);
  for (let k = n - 1; k >= 0; k -= 1) {
    let sum = right[k];
    for (let j = k + 1; j < n; j += 1) sum -= work[j][k] * x[j];
    x[k] = sum / diagonal[k];
  }
  return Array.from(x);
}
