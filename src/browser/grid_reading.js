// Kernel sums from the weights on a grid, at the points of a lattice: some places along each column.
//
// A kernel is a sum of terms that are products over columns, so sums over nodes are taken one column after the other.
// A single query is a lattice of one point.
import { columnFactors } from "./splines.js";

/** A term for the columns of a grid: its height, and factors for each column. */
export function termOf(columns, height, scales, gaussian) {
  const factors = columns.map((column, i) => columnFactors(column.degree, scales[i] / column.spacing, gaussian[i]));
  return { height, factors };
}

/** Coefficients of the nodes along one column for some places: from `start`, `values` for each place. */
function bands(column, factors, places) {
  return Array.from(places, (place) => {
    const along = (place - column.first) / column.spacing;
    if (!factors.gaussian || 2 * factors.reach > column.nodes) {
      const values = new Float64Array(column.nodes);
      for (let node = 0; node < column.nodes; node += 1) values[node] = factors.at(along - node);
      return { start: 0, values };
    }
    const before = Math.floor(along);
    const start = Math.max(0, Math.min(column.nodes, before - factors.reach + 1));
    const end = Math.max(start, Math.min(column.nodes, before + factors.reach + 1));
    const values = new Float64Array(end - start);
    for (let node = start; node < end; node += 1) values[node - start] = factors.at(along - node);
    return { start, values };
  });
}

/** One axis of a tensor of shape (outer, nodes, inner) replaced by places. */
function contract(tensor, outer, nodes, inner, bandsOfPlaces) {
  const places = bandsOfPlaces.length;
  const found = new Float64Array(outer * places * inner);
  for (let o = 0; o < outer; o += 1)
    for (let p = 0; p < places; p += 1) {
      const { start, values } = bandsOfPlaces[p];
      const to = (o * places + p) * inner;
      if (inner === 1) {
        let sum = 0.0;
        const from = o * nodes + start;
        for (let n = 0; n < values.length; n += 1) sum += values[n] * tensor[from + n];
        found[to] = sum;
        continue;
      }
      for (let n = 0; n < values.length; n += 1) {
        const factor = values[n];
        if (factor === 0.0) continue;
        const from = (o * nodes + start + n) * inner;
        for (let i = 0; i < inner; i += 1) found[to + i] += factor * tensor[from + i];
      }
    }
  return found;
}

/** Sums of terms over the nodes of a grid. */
export class GridReader {
  /** @param columns {nodes, spacing, first, degree} of each
   *  @param terms what `termOf` makes */
  constructor(columns, terms) {
    this.columns = columns;
    this.terms = terms;
  }

  /**
   * Σ over nodes of the table times the coefficients, at all points of a lattice, the last column fastest.
   *
   * @param {Float64Array} table the nodes' numbers
   * @param {Float64Array[]} lattice places along each column, relative to the centre of the box
   */
  sums(table, lattice) {
    const number = lattice.reduce((product, places) => product * places.length, 1);
    const total = new Float64Array(number);
    // Columns of one place first: they make the tensor smaller.
    const order = [...lattice.keys()].sort((a, b) => lattice[a].length - lattice[b].length);
    for (const term of this.terms) {
      let tensor = table;
      const shape = this.columns.map((column) => column.nodes);
      for (const column of order) {
        const found = bands(this.columns[column], term.factors[column], lattice[column]);
        const outer = shape.slice(0, column).reduce((a, b) => a * b, 1);
        const inner = shape.slice(column + 1).reduce((a, b) => a * b, 1);
        tensor = contract(tensor, outer, shape[column], inner, found);
        shape[column] = lattice[column].length;
      }
      for (let i = 0; i < number; i += 1) total[i] += term.height * tensor[i];
    }
    return total;
  }

  /** Σ over nodes of the squared coefficients: products over columns of inner products of the terms' factors. */
  gains(lattice) {
    const heights = this.terms.map((term) => term.height);
    const pairs = [];
    for (let i = 0; i < heights.length; i += 1)
      for (let j = i; j < heights.length; j += 1) pairs.push([i, j, (i === j ? 1.0 : 2.0) * heights[i] * heights[j]]);
    const products = lattice.map((places, column) => {
      const factors = this.terms.map((term) => bands(this.columns[column], term.factors[column], places));
      return Array.from(places, (_, p) =>
        Float64Array.from(pairs, ([i, j]) => overlap(factors[i][p], factors[j][p])),
      );
    });
    const number = lattice.reduce((product, places) => product * places.length, 1);
    const gain = new Float64Array(number);
    const at = new Array(lattice.length).fill(0);
    for (let q = 0; q < number; q += 1) {
      let sum = 0.0;
      const here = at.map((place, column) => products[column][place]);
      for (let pair = 0; pair < pairs.length; pair += 1) {
        let product = pairs[pair][2];
        for (let column = 0; column < here.length; column += 1) product *= here[column][pair];
        sum += product;
      }
      gain[q] = sum;
      for (let column = lattice.length - 1; column >= 0; column -= 1) {
        at[column] += 1;
        if (at[column] < lattice[column].length) break;
        at[column] = 0;
      }
    }
    return gain;
  }
}

function overlap(one, other) {
  const start = Math.max(one.start, other.start);
  const end = Math.min(one.start + one.values.length, other.start + other.values.length);
  let sum = 0.0;
  for (let node = start; node < end; node += 1) sum += one.values[node - one.start] * other.values[node - other.start];
  return sum;
}
