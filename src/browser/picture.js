// Pictures of answers on a canvas: a curve with its band, or a map that is hatched where nothing can be distinguished from zero.

const MARGIN = { left: 64, right: 16, top: 12, bottom: 46 };
const HATCH = 7;

/** Matplotlib's viridis at a share from 0 to 1, by polynomials of degree 6. */
export function viridis(share) {
  const t = Math.min(Math.max(share, 0), 1);
  return VIRIDIS.map((c) => Math.round(255 * Math.min(1, Math.max(0, c.reduceRight((sum, each) => sum * t + each, 0)))));
}

const VIRIDIS = [
  [0.2777273272234177, 0.1050930431085774, -0.3308618287255563, -4.634230498983486, 6.228269936347081, 4.776384997670288, -5.435455855934631],
  [0.005407344544966578, 1.404613529898575, 0.214847559468213, -5.799100973351585, 14.17993336680509, -13.74514537774601, 4.645852612178535],
  [0.3340998053353061, 1.384590162594685, 0.09509516302823659, -19.33244095627987, 56.69055260068105, -65.35303263337234, 26.3124352495832],
];

/** A number for people: four significant digits, without trailing zeros. */
export function shown(value, digits = 4) {
  if (!Number.isFinite(value)) return "not known";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  const rounded = Number(value.toPrecision(digits));
  return rounded.toLocaleString("en-US", { maximumSignificantDigits: Math.max(digits, Math.floor(Math.log10(size)) + 1) });
}

/** About `most` round numbers between two ends, with texts that tell them apart. */
export function ticks(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? 10 * power;
  const found = [];
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const plain = decimals <= 6 && Math.max(Math.abs(low), Math.abs(high)) < 1e9;
  const text = (value) =>
    plain ? value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }) : shown(value);
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1)
    found.push({ value: i * step, text: text(i * step).replace(/^-(0(?:\.0*)?)$/, "$1") });
  return found;
}

/** A canvas that knows its size in CSS pixels and where its axes are. */
export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.frame = null;
    this.shown = null;
  }

  /** Forgets what is on the canvas: its place or the page's colours have changed. Reading them takes a layout. */
  reset() {
    this.width = null;
    this.shown = null;
  }

  _measure() {
    if (this.width) return;
    this.width = this.canvas.clientWidth || 600;
    this.ratio = globalThis.devicePixelRatio || 1;
    const style = getComputedStyle(this.canvas);
    this.ink = style.getPropertyValue("--ink") || "#222";
    this.faint = style.getPropertyValue("--faint") || "#888";
    this.line = style.getPropertyValue("--curve") || "#0072B2";
    this.paper = style.getPropertyValue("--paper") || "#fff";
  }

  /** Fits the canvas to its place on the page and clears it; returns the area inside the axes. */
  _begin(height) {
    const { width, ratio } = this;
    const wanted = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wanted[0] || this.canvas.height !== wanted[1]) [this.canvas.width, this.canvas.height] = wanted;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.font = "12px system-ui, sans-serif";
    return {
      x: MARGIN.left, y: MARGIN.top, width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom,
    }; // prettier-ignore
  }

  /** @param view {ranges: [[low, high], [low, high]], labels, nx, ny, aspect} and answers */
  drawMap(view, answers, { hatched, highest, signed }) {
    this._measure();
    // While a slider is dragged only the inside of the axes changes.
    const shown = JSON.stringify([view.ranges, view.labels, view.aspect]);
    if (this.shown !== shown) {
      this._mapAxes(view);
      this.shown = shown;
    }
    const { area } = this.frame;
    this._paint(view, answers, { hatched, highest, signed });
    this.context.strokeStyle = this.faint;
    this.context.lineWidth = 1;
    this.context.strokeRect(area.x, area.y, area.width, area.height);
  }

  _mapAxes(view) {
    const [x, y] = view.ranges;
    const width = this.width - MARGIN.left - MARGIN.right;
    const tall = view.aspect ? width * view.aspect : width * 0.72;
    const area = this._begin(Math.round(Math.min(Math.max(tall, 180), 640)) + MARGIN.top + MARGIN.bottom);
    if (view.aspect) {
      const fitted = Math.min(area.width, area.height / view.aspect);
      area.x += (area.width - fitted) / 2;
      area.width = fitted;
    }
    this.frame = { area, x, y };
    this._axes(area, view.labels);
  }

  /**
   * Every pixel inside the axes, in one pass: a colour between those of its four neighbours, hatched where nothing can be
   * distinguished from zero. Scaling small images and laying a hatched one over them takes three times as long without a graphics
   * processor.
   */
  _paint({ nx, ny }, answers, { hatched, highest, signed }) {
    const { ratio } = this;
    const { area } = this.frame;
    const [left, top] = [Math.round(area.x * ratio), Math.round(area.y * ratio)];
    const [width, height] = [Math.max(1, Math.round(area.width * ratio)), Math.max(1, Math.round(area.height * ratio))];
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const { pixels } = this;
    const period = Math.max(2, Math.round(HATCH * ratio));
    const colours = hatchedPalette(period);
    const shades = shadesOf(answers.value, highest);
    const starts = startsOf(width, nx);
    const row = new Int32Array(nx);
    const free = new Uint8Array(nx);
    for (let y = 0, at = 0; y < height; y += 1) {
      // The first row of pixels is the last of the answers.
      const place = height > 1 ? ((height - 1 - y) * (ny - 1)) / (height - 1) : 0;
      const below = Math.min(Math.floor(place), ny - 1);
      const share = place - below;
      const [lower, upper] = [below * nx, Math.min(below + 1, ny - 1) * nx];
      const nearest = share < 0.5 ? lower : upper;
      for (let i = 0; i < nx; i += 1) {
        row[i] = shades[lower + i] + share * (shades[upper + i] - shades[lower + i]);
        free[i] = !hatched || answers.lower[nearest + i] > 0 || (signed && answers.upper[nearest + i] < 0) ? 1 : 0;
      }
      // From cell to cell the shade grows by equal steps; halfway the other cell decides about the hatching.
      const line = at;
      for (let i = 0; i + 1 < nx; i += 1) {
        const end = line + starts[i + 1];
        const step = ((row[i + 1] - row[i]) / Math.max(1, end - at)) | 0;
        const half = at + ((end - at) >> 1);
        let shade = row[i];
        for (let part = i; part <= i + 1; part += 1) {
          const until = part === i ? half : end;
          if (free[part]) for (; at < until; at += 1, shade += step) pixels[at] = colours[shade >> 16];
          else
            for (let diagonal = (at - line + y) % period; at < until; at += 1, shade += step) {
              pixels[at] = colours[((diagonal + 1) << 8) + (shade >> 16)];
              diagonal = diagonal + 1 === period ? 0 : diagonal + 1;
            }
        }
      }
    }
    this.context.putImageData(this.image, left, top);
  }

  /** @param view {ranges: [[low, high]], labels, steps} */
  drawCurve(view, answers) {
    this._measure();
    this.shown = null;
    const area = this._begin(340);
    const known = answers.lower.some(Number.isFinite);
    const ends = known ? [answers.lower, answers.upper] : [answers.value, answers.value];
    let low = Math.min(0, ...ends[0]);
    let high = Math.max(0, ...ends[1]);
    if (!(high > low)) [low, high] = [0, 1];
    const room = 0.04 * (high - low);
    this.frame = { area, x: view.ranges[0], y: [low < 0 ? low - room : 0, high + room] };
    this._axes(area, view.labels);
    const { context } = this;
    const place = (i, value) => [this._x(view.steps[0][i]), this._y(value)];
    if (known) {
      context.beginPath();
      for (let i = 0; i < answers.length; i += 1) context.lineTo(...place(i, answers.upper[i]));
      for (let i = answers.length - 1; i >= 0; i -= 1) context.lineTo(...place(i, answers.lower[i]));
      context.closePath();
      context.globalAlpha = 0.25;
      context.fillStyle = this.line;
      context.fill();
      context.globalAlpha = 1;
    }
    context.beginPath();
    for (let i = 0; i < answers.length; i += 1) context.lineTo(...place(i, answers.value[i]));
    context.strokeStyle = this.line;
    context.lineWidth = 2;
    context.stroke();
    context.beginPath();
    context.moveTo(area.x, this._y(0));
    context.lineTo(area.x + area.width, this._y(0));
    context.strokeStyle = this.faint;
    context.lineWidth = 0.8;
    context.stroke();
  }

  _x(value) {
    const { area, x } = this.frame;
    return area.x + ((value - x[0]) / (x[1] - x[0])) * area.width;
  }

  _y(value) {
    const { area, y } = this.frame;
    return area.y + area.height - ((value - y[0]) / (y[1] - y[0])) * area.height;
  }

  _axes(area, labels) {
    const { context, frame } = this;
    context.strokeStyle = this.faint;
    context.fillStyle = this.ink;
    context.lineWidth = 1;
    context.strokeRect(area.x, area.y, area.width, area.height);
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const { value, text } of ticks(...frame.x, Math.max(2, Math.floor(area.width / 80)))) {
      context.fillRect(this._x(value) - 0.5, area.y + area.height, 1, 4);
      context.fillText(text, this._x(value), area.y + area.height + 7);
    }
    context.fillText(labels[0], area.x + area.width / 2, area.y + area.height + 26);
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const { value, text } of ticks(...frame.y, Math.max(2, Math.floor(area.height / 50)))) {
      context.fillRect(area.x - 4, this._y(value) - 0.5, 4, 1);
      context.fillText(text, area.x - 7, this._y(value));
    }
    context.save();
    context.translate(11, area.y + area.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(labels[1], 0, 0);
    context.restore();
  }

  /** Marks the queried point. */
  mark(x, y) {
    const { context, frame } = this;
    if (frame === null) return;
    const { area } = frame;
    const at = [this._x(x), y === null ? null : this._y(y)];
    context.save();
    context.beginPath();
    context.rect(area.x, area.y, area.width, area.height);
    context.clip();
    for (const [colour, width] of [["rgba(0,0,0,0.75)", 3], ["rgba(255,255,255,0.95)", 1.2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(at[0], area.y);
      context.lineTo(at[0], area.y + area.height);
      if (at[1] !== null) {
        context.moveTo(area.x, at[1]);
        context.lineTo(area.x + area.width, at[1]);
      }
      context.stroke();
    }
    context.restore();
  }

  /** The point of the axes at a place of the canvas in CSS pixels; null outside. */
  pointAt(left, top) {
    if (this.frame === null) return null;
    const { area, x, y } = this.frame;
    const [s, t] = [(left - area.x) / area.width, 1 - (top - area.y) / area.height];
    if (s < 0 || s > 1 || t < 0 || t > 1) return null;
    return [x[0] + s * (x[1] - x[0]), y[0] + t * (y[1] - y[0])];
  }
}

let colours = null;

/** Colours as numbers of 32 bits: 256 shades plain, then as many for each diagonal of the hatching, which repeats. */
function hatchedPalette(period) {
  if (colours?.period === period) return colours.numbers;
  const bytes = new Uint8ClampedArray(4 * 256 * (period + 1));
  for (let shade = 0; shade < 256; shade += 1) {
    const plain = viridis(shade / 255);
    bytes.set([...plain, 255], 4 * shade);
    for (let at = 0; at < period; at += 1) {
      const [light, share] = hatchAt(at / period, period);
      const over = plain.map((part) => part + share * (light - part));
      bytes.set([...over, 255], 4 * (256 * (at + 1) + shade));
    }
  }
  colours = { period, numbers: new Uint32Array(bytes.buffer) };
  return colours.numbers;
}

/** Light and dark lines in turn, visible on every colour: what is laid over a diagonal, and how much of it. */
function hatchAt(place, period) {
  const near = (middle) => {
    const apart = Math.abs(place - middle);
    return Math.max(0, 1 - (Math.min(apart, 1 - apart) * period) / (0.11 * period + 0.55));
  };
  const [white, black] = [near(0.25), near(0.75)];
  return white >= black ? [255, 0.6 * white] : [0, 0.35 * black];
}

/** Values as shades from 0 to 255, in units of 1/65536. */
function shadesOf(values, highest) {
  const found = new Float64Array(values.length);
  const scale = 255 / highest;
  for (let i = 0; i < values.length; i += 1) {
    const shade = values[i] * scale;
    found[i] = 65536 * (shade > 0 ? (shade < 255 ? shade : 255) : 0) + 32767;
  }
  return found;
}

/** Where the pixels between each cell and the next begin; the last cell is at the last pixel. */
function startsOf(pixels, cells) {
  return Int32Array.from({ length: cells }, (_, i) => Math.round((i * pixels) / (cells - 1)));
}
