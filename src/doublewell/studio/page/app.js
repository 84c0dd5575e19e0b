// The studio: a movie, a form, runs. All text that comes from files is set as text, never as markup.

import { Form, element } from "./form.js";
import { Runs } from "./runs.js";
import { View } from "./view.js";

const at = (id) => document.getElementById(id);
const PAUSE = 350; // milliseconds without typing before the movie is inspected
let file = "";
let form, view, runs, timer;
let asked = 0; // number of the last question; older answers are dropped
let copies = {};

async function api(method, path, body = null, quiet = false) {
  try {
    const options = { method, headers: {} };
    if (body instanceof Blob) options.body = body;
    else if (body !== null) options.body = JSON.stringify(body);
    const answer = await fetch(path, options);
    const text = await answer.text();
    let value;
    try { value = JSON.parse(text); } catch { value = { error: text || answer.statusText }; }
    if (!answer.ok) throw new Error(value.error ?? answer.statusText);
    return value;
  } catch (error) {
    if (!quiet) at("news").textContent = `The studio answered: ${error.message}`;
    return null;
  }
}

function list(files) {
  const size = (bytes) => (bytes === null ? "folder" : bytes > 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`);
  const options = files.map(({ name, size: bytes }) => element("option", { value: name }, `${name} (${size(bytes)})`));
  at("file").replaceChildren(element("option", { value: "" }, files.length ? "choose a movie" : "no movie in this folder: drop one"), ...options);
  at("file").value = file;
}

async function choose(name) {
  file = name;
  at("file").value = name;
  form.forget();
  view.reset();
  at("findings").replaceChildren(element("p", { class: "note" }, name ? "Reading the movie …" : "Choose a movie."));
  at("status").textContent = "";
  ready(null);
  if (name) await Promise.all([inspect(), view.show()]);
}

function ready(answer) {
  copies = answer ?? {};
  at("identify").disabled = !copies.command || Boolean(copies.error);
  at("as-python").disabled = at("as-command").disabled = !answer?.python;
}

function changed() {
  asked += 1; // what is under way answers another question
  ready(null);
  view.draw();
  clearTimeout(timer);
  timer = setTimeout(inspect, PAUSE);
}

async function inspect() {
  if (!file) return;
  clearTimeout(timer);
  asked += 1;
  const [mine, words] = [asked, form.words()];
  at("findings").setAttribute("aria-busy", "true");
  const answer = await api("POST", "/api/inspect", { file, words });
  if (mine !== asked) return;
  at("findings").removeAttribute("aria-busy");
  if (!answer) return;
  if (answer.stated) form.state(answer.stated, words);
  const levels = (form.typed.levels ?? form.stated.levels ?? "").split(",").map(Number);
  view.levels = levels.length === 2 && levels.every(Number.isFinite) ? levels : null;
  view.draw();
  tell(answer);
  ready(answer);
}

function tell(answer) {
  const items = (answer.findings ?? []).map(({ severity, text }) => [severity, text]);
  if (answer.error) items.unshift(["fail", answer.error.replace(/^\S*\/(?=[^/\s]+: )/, "")]);
  if (!items.length) items.push(["ok", "No problems found."]);
  if (answer.note) items.push(["check", answer.note]);
  const box = ([severity, text]) => element("div", { class: `box ${severity}` }, element("span", { class: `badge ${severity}` }, severity), ` ${text}`);
  at("findings").replaceChildren(...items.map(box));
  const sections = (answer.sections ?? []).flatMap(([title, lines]) => [element("dt", {}, title), ...lines.map((line) => element("dd", {}, line))]);
  at("sections").replaceChildren(...sections);
  at("survey").hidden = !sections.length;
}

async function frame(number) {
  const answer = await api("POST", "/api/frame", { file, words: form.words(), frame: number });
  if (answer?.error) at("status").textContent = answer.error;
  return answer?.error ? null : answer;
}

// XMLHttpRequest shows how much of a large file has gone; fetch does not.
function upload(given) {
  const bar = at("uploading");
  bar.hidden = false;
  at("status").textContent = `Copying ${given.name} …`;
  const request = new XMLHttpRequest();
  request.open("PUT", `/api/upload/${encodeURIComponent(given.name)}`);
  request.upload.addEventListener("progress", (event) => { bar.max = event.total; bar.value = event.loaded; });
  request.addEventListener("loadend", async () => {
    bar.hidden = true;
    let answer = {};
    try { answer = JSON.parse(request.responseText); } catch { answer = { error: request.responseText || "the file was not taken" }; }
    if (!answer.file) { at("status").textContent = `${given.name}: ${answer.error}`; return; }
    const state = await api("GET", "/api/state");
    if (state) list(state.files);
    await choose(answer.file);
    at("status").textContent = `${given.name} is in the folder as ${answer.file}.`;
  });
  request.send(given);
}

async function copy(kind, words) {
  const text = copies[kind];
  at("copied").hidden = false;
  at("copied").querySelector("pre").textContent = text;
  try {
    await navigator.clipboard.writeText(text);
    at("copied-note").textContent = `${words} is on the clipboard; it gives the same numbers.`;
  } catch {
    at("copied-note").textContent = `${words}, to be copied from here; it gives the same numbers.`;
  }
}

async function identify() {
  at("identify").disabled = true;
  at("news").textContent = "";
  const answer = await api("POST", "/api/runs", { file, words: form.words(), name: at("name").value });
  at("identify").disabled = !copies.command || Boolean(copies.error); // the form may be another by now
  if (!answer) return;
  at("news").textContent = "The run is in the list.";
  const known = await api("GET", "/api/runs");
  if (known) await runs.update(known.runs);
}

async function begin() {
  const state = await api("GET", "/api/state");
  if (!state) return;
  at("folder").textContent = state.folder;
  if (state.error) { at("news").textContent = state.error; return; }
  const part = { read: (name) => form.inputs.get(name).value, write: (name, word) => form.set(name, word) };
  form = new Form(state.fields, at("fields"), at("part"), changed);
  view = new View(frame, part);
  runs = new Runs(api, (words) => { at("news").textContent = words; });
  at("survey").hidden = true;
  at("file").addEventListener("change", () => choose(at("file").value));
  at("upload").addEventListener("change", () => { if (at("upload").files.length) upload(at("upload").files[0]); at("upload").value = ""; });
  at("identify").addEventListener("click", identify);
  at("as-python").addEventListener("click", () => copy("python", "The script"));
  at("as-command").addEventListener("click", () => copy("command", "The command"));
  const drop = at("drop");
  for (const name of ["dragenter", "dragover"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  document.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) upload(event.dataTransfer.files[0]); });
  list(state.files);
  await runs.update(state.runs);
  runs.poll();
  if (state.first) await choose(state.first);
}

begin();
