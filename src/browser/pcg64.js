// NumPy's generator `default_rng(0)`: the bound of a grid's errors is found at pseudo-random pairs, and Python and this
// reader shall take the same.

const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
const INCREMENT = 87136372517582989555478159403783844777n;
const STATE = 35399562948360463058890781895381311971n;
const LOW = (1n << 64n) - 1n;
const WHOLE = (1n << 128n) - 1n;
const LEVELS = 256;
const LAST = 3.6541528853610087963519472518;

export class Pcg64 {
  constructor() {
    this.state = STATE;
  }

  next() {
    this.state = (this.state * MULTIPLIER + INCREMENT) & WHOLE;
    const mixed = (this.state >> 64n) ^ (this.state & LOW);
    const turn = this.state >> 122n;
    return ((mixed >> turn) | (mixed << (64n - turn))) & LOW;
  }

  uniform(low = 0.0, high = 1.0) {
    return low + (high - low) * (Number(this.next() >> 11n) * 2 ** -53);
  }

  /** A standard normal number by the ziggurat method (Marsaglia and Tsang 2000). */
  normal() {
    const { widths, limits, heights } = ziggurat();
    for (;;) {
      const word = this.next();
      const level = Number(word & 0xffn);
      const size = Number((word >> 9n) & 0xfffffffffffffn);
      const x = size * widths[level] * ((word >> 8n) & 1n ? -1.0 : 1.0);
      if (size < limits[level]) return x;
      if (level === 0) {
        for (;;) {
          const beyond = (-1.0 / LAST) * Math.log1p(-this.uniform());
          const y = -Math.log1p(-this.uniform());
          if (y + y > beyond * beyond) return (BigInt(size) >> 8n) & 1n ? -(LAST + beyond) : LAST + beyond;
        }
      }
      const height = (heights[level - 1] - heights[level]) * this.uniform() + heights[level];
      if (height < Math.exp(-0.5 * x * x)) return x;
    }
  }
}

let tables = null;

function ziggurat() {
  if (tables !== null) return tables;
  const whole = 2 ** 52;
  const area = 0.00492867323397465524494;
  const widths = new Float64Array(LEVELS);
  const limits = new Float64Array(LEVELS);
  const heights = new Float64Array(LEVELS);
  let x = LAST;
  const base = area / Math.exp(-0.5 * x * x);
  limits[0] = (x / base) * whole;
  widths[0] = base / whole;
  widths[LEVELS - 1] = x / whole;
  heights[0] = 1.0;
  heights[LEVELS - 1] = Math.exp(-0.5 * x * x);
  for (let i = LEVELS - 2; i >= 1; i -= 1) {
    const before = x;
    x = Math.sqrt(-2.0 * Math.log(area / x + Math.exp(-0.5 * x * x)));
    limits[i + 1] = (x / before) * whole;
    heights[i] = Math.exp(-0.5 * x * x);
    widths[i] = x / whole;
  }
  limits[1] = 0.0;
  tables = { widths, limits, heights };
  return tables;
}
