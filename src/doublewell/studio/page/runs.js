// The runs: how far each is, its downloads, its report; curves of several over each other, numbers side by side.

import { element } from "./form.js";
import { shape, short } from "./view.js";

const OVER = ["done", "stopped", "failed", "killed", "crashed"];
const STATES = { queued: "waiting", running: "running", stopping: "stopping", done: "done", stopped: "stopped", failed: "failed", killed: "ended", crashed: "crashed" };
const EXPORTS = { moose: "MOOSE", "py-pde": "py-pde", fipy: "FiPy", sympy: "SymPy", python: "NumPy", latex: "LaTeX", json: "JSON" };
const NUMBERS = ["physical_kappa", "physical_barrier", "width", "height", "q", "epsilon", "barrier", "kappa", "force_band", "noise", "low", "high"];
const COLOURS = 6;

const pretty = (unit) => unit.replaceAll("^2", "²").replaceAll("^3", "³");

export class Runs {
  constructor(api, news) {
    this.api = api;
    this.news = news;
    this.list = document.getElementById("list");
    this.cards = new Map();
    this.answers = new Map(); // by file of a run
    this.shown = new Set(); // runs whose curves are drawn
    this.symbol = null; // the curve that is drawn: the last one that all have,
    this.chosen = null; // or that which was chosen
    document.getElementById("close-report").addEventListener("click", () => this.close());
  }

  async poll() {
    const answer = await this.api("GET", "/api/runs", null, true);
    if (answer) await this.update(answer.runs);
    const busy = answer?.runs.some((run) => !OVER.includes(run.state));
    setTimeout(() => this.poll(), busy ? 700 : 3000);
  }

  async update(runs) {
    const known = new Set(runs.map((run) => run.run));
    for (const [name, card] of this.cards) {
      if (known.has(name)) continue;
      card.element.remove();
      this.cards.delete(name);
      this.shown.delete(name);
    }
    for (const run of runs) {
      if (!this.cards.has(run.run)) this.build(run);
      await this.refresh(run);
    }
    await this.compare();
  }

  build(run) {
    const title = run.name || run.file.split("/").at(-1);
    const state = element("span", { class: "badge" });
    const words = element("span", { class: "note" });
    const bar = element("progress", { "aria-label": `progress of ${title}` });
    const stated = element("div", { class: "note" });
    const stop = element("button", { type: "button" }, "Stop");
    const remove = element("button", { type: "button" }, "Remove");
    const report = element("button", { type: "button" }, "Show the report");
    const curve = element("input", { type: "checkbox", id: `show-${run.run}` });
    const show = element("label", { for: `show-${run.run}` }, curve, " show the curve");
    const links = element("div", { class: "links" });
    const downloads = element("details", {}, element("summary", {}, "Downloads"), links);
    const asked = Object.entries(run.words).map(([name, word]) => `${name.replaceAll("_", " ")} ${word}`).join(", ");
    const card = element(
      "article", { class: "run", "aria-label": `run ${title}` },
      element("div", { class: "row" }, element("h3", {}, title), state, words),
      element("p", { class: "note" }, asked ? `${run.file}: ${asked}` : run.file),
      bar, stated, element("div", { class: "row" }, show, report, stop, remove), downloads,
    );
    stop.addEventListener("click", () => this.act(stop, "POST", `/api/runs/${run.run}/stop`));
    remove.addEventListener("click", () => this.act(remove, "DELETE", `/api/runs/${run.run}`));
    report.addEventListener("click", () => this.open(run.run, title));
    curve.addEventListener("change", () => {
      if (curve.checked) this.shown.add(run.run);
      else this.shown.delete(run.run);
      this.compare();
    });
    this.list.prepend(card);
    this.cards.set(run.run, { element: card, title, state, words, bar, stated, stop, remove, report, curve, show, downloads, links, last: null });
  }

  async refresh(run) {
    const card = this.cards.get(run.run);
    const over = OVER.includes(run.state);
    const { stage = "", done = 0, total = 0, stated = [] } = run.progress;
    card.state.className = `badge ${run.state}`;
    card.state.textContent = STATES[run.state];
    card.words.textContent = `${run.message || stage}${run.seconds ? ` (${run.seconds.toFixed(0)} s)` : ""}`;
    card.bar.hidden = over || run.state === "queued";
    if (total > 0) { card.bar.max = total; card.bar.value = done; } else card.bar.removeAttribute("value");
    if (!over) card.stated.replaceChildren(...stated.map((text) => element("p", {}, text)));
    card.stop.hidden = over;
    card.stop.textContent = run.state === "stopping" ? "End at once" : "Stop";
    card.remove.hidden = !over;
    card.report.hidden = card.downloads.hidden = !run.answer;
    card.show.hidden = !run.answer && !run.early;
    const key = `${run.state} ${run.early} ${run.answer}`;
    if (card.last === key) return;
    const before = card.last;
    card.last = key;
    const file = run.answer ? "answer.json" : run.early ? "early.json" : null;
    if (file) {
      const answer = await this.api("GET", `/runs/${run.run}/${file}`);
      if (!answer) return;
      this.answers.set(run.run, { ...answer, early: file === "early.json" });
      if (!card.curve.checked && (before || this.shown.size < COLOURS)) { card.curve.checked = true; this.shown.add(run.run); }
      if (run.answer) this.finish(run, card, answer);
      else this.news(`${card.title}: an early answer of the weak-form fit is shown`);
    }
    if (over && before) this.news(`${card.title}: ${STATES[run.state]}${run.message ? `, ${run.message}` : ""}`);
  }

  finish(run, card, answer) {
    const worst = ["fail", "check"].find((word) => answer.findings.some((item) => item.severity === word)) ?? "ok";
    const count = answer.findings.filter((item) => item.severity === worst).length;
    const words = worst === "ok" ? "no problems found" : `${count} ${count > 1 ? "findings" : "finding"} to read in the report`;
    card.stated.replaceChildren(element("p", {}, element("span", { class: `badge ${worst}` }, worst), ` ${answer.headline}; ${words}`));
    const link = (name, text) => element("a", { href: `/runs/${run.run}/${name}`, download: name }, text);
    const texts = Object.entries(answer.exports).map(([kind, name]) => link(name, EXPORTS[kind]));
    card.links.replaceChildren(
      link("result.json", "result"), element("a", { href: `/runs/${run.run}/report.html?download=1`, download: "report.html" }, "report"),
      link("facts.csv", "table of numbers (CSV)"), link("script.py", "Python script"), ...texts,
    );
  }

  async act(button, method, path) {
    button.disabled = true;
    await this.api(method, path, {});
    button.disabled = false;
    const answer = await this.api("GET", "/api/runs");
    if (answer) await this.update(answer.runs);
  }

  open(run, title) {
    const section = document.getElementById("report");
    document.getElementById("report-title").textContent = `Report: ${title}`;
    document.getElementById("page").src = `/runs/${run}/report.html`;
    section.hidden = false;
    section.scrollIntoView();
    document.getElementById("close-report").focus();
  }

  close() {
    document.getElementById("report").hidden = true;
    document.getElementById("page").src = "about:blank";
    document.getElementById("runs-title").scrollIntoView();
  }

  compare() {
    const shown = [...this.cards].filter(([name]) => this.shown.has(name) && this.answers.has(name));
    const box = document.getElementById("compare");
    box.hidden = shown.length === 0;
    const key = JSON.stringify([shown.map(([name]) => [name, this.answers.get(name).early]), this.chosen]);
    if (box.hidden || key === this.drawn) return;
    this.drawn = key;
    const lines = shown.map(([name, card], k) => ({ answer: this.answers.get(name), title: card.title, colour: `c${k % COLOURS}`, width: Math.max(4 - k, 1.5) })); // equal curves show all colours
    const symbols = [...new Set(lines.flatMap(({ answer }) => answer.curves.map((curve) => curve.symbol)))];
    const common = symbols.filter((symbol) => lines.every(({ answer }) => answer.curves.some((curve) => curve.symbol === symbol)));
    this.symbol = symbols.includes(this.chosen) ? this.chosen : common.at(-1) ?? symbols.at(-1);
    this.choose(symbols, lines);
    this.draw(lines);
    this.table(lines);
  }

  choose(symbols, lines) {
    const box = document.getElementById("symbols");
    const names = new Map(lines.flatMap(({ answer }) => answer.curves.map((curve) => [curve.symbol, curve.name])));
    const focused = box.contains(document.activeElement);
    const made = symbols.map((symbol) => {
      const input = element("input", { type: "radio", name: "symbol", value: symbol });
      input.checked = symbol === this.symbol;
      input.addEventListener("change", () => { this.chosen = symbol; this.compare(); });
      return element("label", {}, input, ` ${names.get(symbol)}`);
    });
    box.replaceChildren(box.querySelector("legend"), ...made);
    if (focused) box.querySelector("input:checked").focus();
  }

  draw(lines) {
    const drawn = lines.map((line) => ({ ...line, curve: line.answer.curves.find((curve) => curve.symbol === this.symbol) })).filter((line) => line.curve);
    const all = drawn.flatMap(({ curve }) => [curve.values, curve.low ?? [], curve.high ?? []].flat()).filter(Number.isFinite);
    const places = drawn.flatMap(({ curve }) => curve.u);
    const [left, right, low, high] = [Math.min(...places), Math.max(...places), Math.min(...all, 0), Math.max(...all)];
    const x = (u) => 70 + (630 * (u - left)) / (right - left || 1);
    const y = (value) => 350 - (330 * (value - low)) / (high - low || 1);
    const path = (us, values) => us.map((u, k) => `${x(u).toFixed(1)},${y(values[k]).toFixed(1)}`);
    const marks = [0, 0.25, 0.5, 0.75, 1].flatMap((part) => {
      const [u, value] = [left + part * (right - left), low + part * (high - low)];
      return [
        shape("text", { x: x(u), y: 370, "text-anchor": "middle" }, short(u)),
        shape("text", { x: 62, y: y(value) + 4, "text-anchor": "end" }, short(value)),
      ];
    });
    const chart = document.getElementById("curves");
    chart.replaceChildren(
      shape("path", { class: "axis", d: `M70 20V350H700M70 ${y(0)}H700` }), ...marks,
      shape("text", { x: 385, y: 392, "text-anchor": "middle" }, "phase value u"),
      ...drawn.filter(({ curve }) => curve.low).map(({ curve, colour }) => shape("polygon", {
        class: `region ${colour}`, points: [...path(curve.u, curve.low), ...path([...curve.u].reverse(), [...curve.high].reverse())].join(" "),
      })),
      ...drawn.map(({ curve, colour, answer, width }) => shape("polyline", { class: `line ${colour}${answer.early ? " early" : ""}`, "stroke-width": width, points: path(curve.u, curve.values).join(" ") })),
    );
    const unit = drawn.length ? `${drawn[0].curve.name} in ${pretty(drawn[0].curve.unit)}` : "no curve";
    chart.setAttribute("aria-label", `${unit} over the phase value, of ${drawn.map(({ title }) => title).join(", ")}; the numbers are in the table below`);
    const without = lines.filter(({ title }) => !drawn.some((line) => line.title === title)).map(({ title }) => title);
    document.getElementById("legend").replaceChildren(
      `${unit}. `,
      ...drawn.map(({ title, colour, answer }) => element("span", { class: colour }, element("span", { class: "key" }), element("span", { class: "name" }, `${title}${answer.early ? " (early, weak form)" : ""}`))),
      "Shaded: 95 % bands.", ...(without.length ? [` Without this curve, for lack of a surface tension: ${without.join(", ")}.`] : []),
    );
  }

  table(lines) {
    const keys = NUMBERS.filter((key) => lines.some(({ answer }) => key in answer.facts));
    const names = new Map(lines.flatMap(({ answer }) => Object.entries(answer.facts).map(([key, fact]) => [key, fact.name])));
    const cell = (fact) => {
      if (!fact) return element("td", {}, "–");
      const range = fact.interval ? [element("small", {}, `${short(fact.interval[0])} to ${short(fact.interval[1])}`)] : [];
      return element("td", {}, `${short(fact.value)}${fact.unit ? ` ${pretty(fact.unit)}` : ""}`, ...range);
    };
    document.getElementById("numbers").replaceChildren(
      element("caption", { class: "note" }, "Numbers with their 95 % intervals"),
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "number"), ...lines.map(({ title, colour }) => element("th", { scope: "col" }, element("span", { class: colour }, element("span", { class: "key" })), title)))),
      element("tbody", {}, ...keys.map((key) => element("tr", {}, element("th", { scope: "row" }, names.get(key)), ...lines.map(({ answer }) => cell(answer.facts[key]))))),
    );
  }
}
