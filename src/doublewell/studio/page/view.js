// The picture of a frame with its profile and histogram; windows and places to leave out are drawn on it, in cells.

const SVG = "http://www.w3.org/2000/svg";
const CIVIDIS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [166, 157, 117], [196, 181, 108], [228, 207, 91], [254, 232, 56],
];
const MISSING = 65535;
const BINS = 64;

export function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export const short = (x) => (x === 0 ? "0" : String(Number(x.toPrecision(4))));

// Boxes are words such as "10:50,:"; the last two spans are those of the picture.
export function boxes(text, mesh) {
  const found = [];
  for (const word of text.split(";")) {
    const spans = word.split(",").map((span) => span.trim().split(":"));
    if (!word.trim() || spans.length !== mesh.length || spans.some((span) => span.length !== 2)) continue;
    const ends = spans.map(([a, b], k) => [a === "" ? 0 : Number(a), b === "" ? mesh[k] : Number(b)]);
    if (ends.flat().every(Number.isFinite)) found.push(ends);
  }
  return found;
}

export class View {
  constructor(load, part) {
    this.load = load; // asks the server for a frame
    this.part = part; // [read, write] of the fields window and leave_out
    this.canvas = document.getElementById("picture");
    this.overlay = document.getElementById("overlay");
    this.slider = document.getElementById("frame");
    this.row = document.getElementById("row");
    this.levels = null;
    this.frame = null;
    this.busy = false;
    for (const tool of document.querySelectorAll("input[name=tool]")) {
      tool.addEventListener("change", () => this.overlay.classList.toggle("draws", this.tool() !== "profile"));
    }
    this.slider.addEventListener("input", () => this.show());
    this.row.addEventListener("input", () => this.draw());
    this.overlay.addEventListener("pointerdown", (event) => this.begin(event));
    this.overlay.addEventListener("pointermove", (event) => this.move(event));
    this.overlay.addEventListener("pointerup", (event) => this.finish(event));
    this.overlay.addEventListener("pointercancel", () => { this.drag = null; this.draw(); });
  }

  reset() {
    this.frame = this.levels = null;
    this.slider.value = "0";
    this.row.value = "0";
    document.getElementById("view").hidden = true;
  }

  // One request at a time; while one is on its way only the last wish counts.
  async show() {
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const first = this.frame === null;
    const frame = await this.load(Number(this.slider.value));
    this.busy = false;
    if (frame) {
      const bytes = Uint8Array.from(atob(frame.values), (letter) => letter.charCodeAt(0));
      this.frame = { ...frame, values: new Uint16Array(bytes.buffer) };
      this.slider.max = String(frame.frames - 1);
      const [rows] = frame.shape;
      this.row.max = String(rows - 1);
      this.row.closest(".slider").hidden = rows < 2;
      if (first) this.row.value = String(Math.floor(rows / 2));
      document.getElementById("view").hidden = false;
      this.draw();
    }
    if (this.again) { this.again = false; await this.show(); }
  }

  value(code) {
    const { low, high } = this.frame;
    return low + ((high - low) * code) / (MISSING - 1);
  }

  draw() {
    if (!this.frame) return;
    const { shape: [rows, columns], values, frame, frames, time, mesh, step } = this.frame;
    const when = `frame ${frame} of 0 to ${frames - 1}, t = ${short(time)}`;
    document.getElementById("when").textContent = when;
    this.slider.setAttribute("aria-valuetext", when);
    const row = Math.min(Number(this.row.value), rows - 1);
    document.getElementById("row-number").textContent = `row ${row * step}`;
    this.canvas.width = columns;
    this.canvas.height = rows;
    this.canvas.setAttribute("aria-label", `${when}; values ${short(this.frame.low)} (dark blue) to ${short(this.frame.high)} (yellow)`);
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    values.forEach((code, k) => {
      const place = (code / (MISSING - 1)) * (CIVIDIS.length - 1);
      const a = CIVIDIS[Math.min(Math.floor(place), CIVIDIS.length - 1)];
      const b = CIVIDIS[Math.min(Math.floor(place) + 1, CIVIDIS.length - 1)];
      const colour = code === MISSING ? [209, 36, 47] : a.map((x, i) => x + (b[i] - x) * (place - Math.floor(place)));
      image.data.set([...colour, 255], 4 * k);
    });
    context.putImageData(image, 0, 0);
    this.drawParts(row, mesh);
    this.drawProfile(row, columns, values);
    this.drawHistogram(values);
  }

  drawParts(row, mesh) {
    const [height, width] = mesh.length > 1 ? mesh.slice(-2) : [1, mesh[0]];
    this.overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const drawn = [];
    const plane = (box) => (box.length > 1 ? box.slice(-2) : [[0, 1], box[0]]);
    const preview = this.drag ? { [this.tool()]: this.word(this.drag) } : {};
    for (const box of boxes(preview.window ?? this.part.read("window"), mesh).map(plane)) {
      const [[y0, y1], [x0, x1]] = box;
      drawn.push(shape("path", { class: "shade", d: `M0 0H${width}V${height}H0ZM${x0} ${y0}H${x1}V${y1}H${x0}Z` }));
      drawn.push(shape("rect", { class: "window", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }));
    }
    const out = [this.part.read("leave_out"), preview.leave_out].filter(Boolean).join(";");
    for (const [[y0, y1], [x0, x1]] of boxes(out, mesh).map(plane)) {
      drawn.push(shape("rect", { class: "out", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }));
    }
    const y = (row + 0.5) * this.frame.step;
    if (height > 1) drawn.push(shape("line", { class: "row", x1: 0, x2: width, y1: y, y2: y }));
    this.overlay.replaceChildren(...drawn);
  }

  drawProfile(row, columns, values) {
    const points = [];
    for (let k = 0; k < columns; k += 1) {
      const code = values[row * columns + k];
      if (code !== MISSING) points.push(`${46 + (269 * k) / Math.max(columns - 1, 1)},${110 - (100 * code) / (MISSING - 1)}`);
    }
    const chart = document.getElementById("profile");
    const { low, high, dx, step } = this.frame;
    chart.replaceChildren(
      shape("path", { class: "axis", d: "M46 10V110H315" }), shape("text", { x: 42, y: 16, "text-anchor": "end" }, short(high)), shape("text", { x: 42, y: 110, "text-anchor": "end" }, short(low)),
      shape("text", { x: 46, y: 125 }, "0"), shape("text", { x: 315, y: 125, "text-anchor": "end" }, `x = ${short((columns - 1) * step * dx.at(-1))}`),
      shape("polyline", { class: "curve", points: points.join(" ") }),
    );
    const seen = Array.from(values.subarray(row * columns, (row + 1) * columns)).filter((code) => code !== MISSING);
    const least = seen.length ? `${short(this.value(Math.min(...seen)))} to ${short(this.value(Math.max(...seen)))}` : "none";
    chart.setAttribute("aria-label", `line profile of row ${row * step}: values ${least}`);
  }

  drawHistogram(values) {
    const counts = new Array(BINS).fill(0);
    for (const code of values) if (code !== MISSING) counts[Math.min(BINS - 1, Math.floor((BINS * code) / MISSING))] += 1;
    const most = Math.max(...counts, 1);
    const { low, high } = this.frame;
    const width = 269 / BINS;
    const path = counts.map((n, k) => `M${46 + k * width} 110v${(-100 * Math.sqrt(n)) / Math.sqrt(most)}h${width}V110`).join("");
    const marks = (this.levels ?? []).filter((x) => x >= low && x <= high).map((x) => 46 + (269 * (x - low)) / (high - low));
    const chart = document.getElementById("histogram");
    chart.replaceChildren(
      shape("path", { class: "bars", d: path }), shape("path", { class: "axis", d: "M46 10V110H315" }),
      ...marks.map((x) => shape("line", { class: "level", x1: x, x2: x, y1: 10, y2: 110 })),
      shape("text", { x: 46, y: 125 }, short(low)), shape("text", { x: 315, y: 125, "text-anchor": "end" }, short(high)),
    );
    const peaks = counts.map((n, k) => [n, k]).sort((a, b) => b[0] - a[0]).slice(0, 2).map(([, k]) => short(low + ((k + 0.5) * (high - low)) / BINS));
    chart.setAttribute("aria-label", `histogram of the frame, from ${short(low)} to ${short(high)}, most often near ${peaks.join(" and ")}`);
  }

  tool() {
    return document.querySelector("input[name=tool]:checked").value;
  }

  cell(event) {
    const place = this.overlay.getBoundingClientRect();
    const mesh = this.frame.mesh;
    const [height, width] = mesh.length > 1 ? mesh.slice(-2) : [1, mesh[0]];
    const clamp = (x, n) => Math.min(Math.max(x, 0), n);
    return [clamp(((event.clientY - place.top) / place.height) * height, height), clamp(((event.clientX - place.left) / place.width) * width, width)];
  }

  begin(event) {
    if (!this.frame) return;
    this.overlay.setPointerCapture(event.pointerId);
    const cell = this.cell(event);
    this.drag = { from: cell, to: cell };
    this.move(event);
  }

  move(event) {
    if (!this.drag) return;
    this.drag.to = this.cell(event);
    if (this.tool() === "profile") this.row.value = String(Math.floor(this.drag.to[0] / this.frame.step));
    this.draw();
  }

  finish(event) {
    if (!this.drag) return;
    this.drag.to = this.cell(event);
    const [tool, word] = [this.tool(), this.word(this.drag)];
    this.drag = null;
    if (tool === "window" && word) this.part.write("window", word);
    if (tool === "leave_out" && word) this.part.write("leave_out", [this.part.read("leave_out"), word].filter(Boolean).join(";"));
    this.draw();
  }

  // The box of a drag as a word: whole cells, all of the axes that the picture does not show.
  word({ from, to }) {
    if (this.tool() === "profile") return "";
    const mesh = this.frame.mesh;
    const spans = [0, 1].map((k) => [Math.floor(Math.min(from[k], to[k])), Math.ceil(Math.max(from[k], to[k]))]);
    if (spans.some(([a, b]) => b - a < 1)) return "";
    const shown = mesh.length > 1 ? spans : spans.slice(1);
    return [...new Array(mesh.length - shown.length).fill(":"), ...shown.map(([a, b]) => `${a}:${b}`)].join(",");
  }
}
