// The form: fields are those of the command line; what the file states is filled in, what was typed is marked as yours.
// A word is sent only where it differs from what the file says, so that a command holds what was decided and no more.

const PAIRS = { dx: "length_unit", dt: "time_unit", times: "time_unit" }; // a step of one's own has a unit of one's own

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export class Form {
  constructor(fields, main, part, changed) {
    this.fields = new Map(fields.map((field) => [field.name, field]));
    this.inputs = new Map();
    this.notes = new Map();
    this.stated = {}; // what the file says
    this.typed = {}; // what was decided here
    this.changed = changed;
    const first = element("div", { class: "fields" });
    main.append(first);
    const groups = new Map();
    for (const field of fields) {
      let place = field.group === "Part" ? part : first;
      if (!field.first && field.group !== "Part") {
        if (!groups.has(field.group)) groups.set(field.group, element("div", { class: "fields" }));
        place = groups.get(field.group);
      }
      place.append(this.build(field));
    }
    for (const [name, fields] of groups) {
      main.append(element("details", {}, element("summary", {}, `More: ${name}`), fields));
    }
    main.addEventListener("submit", (event) => event.preventDefault());
  }

  build(field) {
    const id = `field-${field.name}`;
    const flag = `--${field.name.replaceAll("_", "-")}`;
    const label = element("label", { for: id }, `${field.label} `, element("code", {}, flag));
    const note = element("span", { class: "from", id: `${id}-from` });
    let input;
    if (field.kind === "text") {
      input = element("input", { id, type: "text", autocomplete: "off", spellcheck: "false", placeholder: field.value });
    } else {
      const words = field.kind === "switch" ? ["true", "false"] : field.choices;
      const shown = { true: "yes", false: "no" };
      const blank = field.value ? [] : [element("option", { value: "" }, "not stated")];
      input = element("select", { id }, ...blank, ...words.map((word) => element("option", { value: word }, shown[word] ?? word)));
      input.value = field.value;
    }
    input.setAttribute("aria-describedby", `${id}-from`);
    const parts = [label, input];
    if (field.kind === "text" && field.choices.length) {
      input.setAttribute("list", `${id}-list`);
      parts.push(element("datalist", { id: `${id}-list` }, ...field.choices.map((word) => element("option", { value: word }))));
    }
    const help = element("details", {}, element("summary", { "aria-label": `About ${field.label}` }, "what is this?"), field.help);
    input.addEventListener("input", () => this.set(field.name, input.value, false));
    this.inputs.set(field.name, input);
    this.notes.set(field.name, note);
    return element("div", { class: "field" }, ...parts, note, help);
  }

  // What a field holds without any decision of the user.
  usual(name) {
    return this.stated[name] ?? (this.fields.get(name).kind === "text" ? "" : this.fields.get(name).value);
  }

  set(name, value, shown = true) {
    if (value === "" || value === this.usual(name)) delete this.typed[name];
    else this.typed[name] = value;
    if (shown) this.inputs.get(name).value = value;
    this.mark(name);
    this.changed();
  }

  // Take over what the file states, wherever the answer does not only repeat what was asked.
  state(stated, asked) {
    for (const [name, input] of this.inputs) {
      if (name in asked) continue;
      if (name in stated) this.stated[name] = stated[name];
      else delete this.stated[name];
      if (!(name in this.typed) && document.activeElement !== input) input.value = this.usual(name);
      this.mark(name);
    }
  }

  mark(name) {
    const note = this.notes.get(name);
    const yours = name in this.typed;
    const source = name === "levels" ? "found in the movie" : name === "boundary" && this.typed.window ? "of the window" : "from the file";
    note.textContent = yours ? "yours" : name in this.stated ? source : "";
    note.classList.toggle("yours", yours);
  }

  forget() {
    this.stated = {};
    this.typed = {};
    for (const [name, input] of this.inputs) {
      input.value = this.usual(name);
      this.mark(name);
    }
  }

  words() {
    const words = { ...this.typed };
    for (const [step, unit] of Object.entries(PAIRS)) {
      if (step in words && !(unit in words) && this.inputs.get(unit).value) words[unit] = this.inputs.get(unit).value;
    }
    return words;
  }
}
