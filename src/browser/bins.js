// A released histogram: every record is read at the middle of its cell.
import { affordable, box, columnNames, fields, list, require, whole } from "./header.js";

const MOST_BINS = 2 ** 20;
const MOST_CELLS = 2 ** 22;
const LATTICE_SLOPE = 2.0;
const LATTICE_CURVATURE = 5.4;

export function binsBasis(parameters) {
  fields(parameters, ["bins", "bounds", "columns"]);
  const bounds = box(parameters.bounds);
  const bins = list(parameters.bins).map((each) => whole(each, 1, MOST_BINS));
  require(bins.length === bounds.dim);
  const cells = bins.reduce((a, b) => a * b, 1);
  affordable(cells <= MOST_CELLS, `A histogram of ${cells} cells`);
  const moved = (many) => ({ l1: many, l2Squared: many });
  return { name: "bins", moved, shape: [1, cells], box: bounds, columns: columnNames(parameters.columns, bounds.dim), bins };
}

export class BinsReading {
  constructor(basis, kernel) {
    require(kernel !== null && kernel.ofColumns && kernel.dim === basis.box.dim);
    this.basis = basis;
    this.kernel = kernel;
    this.blocks = null;
    const { low, high, centre } = basis.box;
    this.width = basis.bins.map((number, i) => (high[i] - low[i]) / number);
    this.centres = Array.from({ length: basis.shape[1] }, (_, cell) => {
      const point = new Float64Array(basis.bins.length);
      let rest = cell;
      for (let column = basis.bins.length - 1; column >= 0; column -= 1) {
        const code = rest % basis.bins[column];
        rest = Math.floor(rest / basis.bins[column]);
        const place = low[column] + (code + 0.5) * this.width[column];
        point[column] = Math.min(Math.max(place, low[column]), high[column]) - centre[column];
      }
      return point;
    });
  }

  lattice(row) {
    return row;
  }

  evaluate(table, query) {
    let sum = 0.0;
    this.centres.forEach((centre, cell) => (sum += table[cell] * this.kernel.similarity(centre, query)));
    return [sum];
  }

  noiseGain(query) {
    let sum = 0.0;
    for (const centre of this.centres) sum += this.kernel.similarity(centre, query) ** 2;
    return [sum];
  }

  methodVariance(table, query) {
    return [cellErrors(this.kernel, this.centres, this.width, table, query)];
  }

  biasBound() {
    return [0.0];
  }

  total(table) {
    return [table.reduce((sum, value) => sum + value, 0.0), table.length];
  }

  totalCovariance() {
    return [0.0];
  }
}

/** The expected squared error of a kernel sum in which records stand at the middles of cells. */
export function cellErrors(kernel, centres, width, held, query) {
  const dim = width.length;
  const middle = Float64Array.from(centres, (centre) => kernel.similarity(centre, query));
  let [mean, spread] = [0.0, 0.0];
  const moved = new Float64Array(dim);
  for (let column = 0; column < dim; column += 1) {
    const step = width[column] / Math.sqrt(12.0);
    let [bent, sloped, squares] = [0.0, 0.0, 0.0];
    centres.forEach((centre, cell) => {
      moved.set(centre);
      moved[column] = centre[column] + step;
      const above = kernel.similarity(moved, query);
      moved[column] = centre[column] - step;
      const below = kernel.similarity(moved, query);
      const slope = 0.5 * (above - below);
      bent += held[cell] * (0.5 * (above + below) - middle[cell]);
      sloped += held[cell] * slope;
      squares += (held[cell] * slope) ** 2;
    });
    mean += bent;
    spread += Math.max(squares, LATTICE_SLOPE * sloped ** 2 + (LATTICE_CURVATURE - 1.0) * bent ** 2);
  }
  return mean ** 2 + spread;
}
