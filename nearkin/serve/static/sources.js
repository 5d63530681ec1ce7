// Whose queries are looked at: the index, a run, or a loss of a benchmark, one alone or two side by side.
import { go, link } from "./address.js";
import { make } from "./dom.js";

export const named = (sources, key) => (sources.find((source) => source.key === key) || { name: key }).name;

export function options(sources, chosen, usable = () => true) {
  const groups = new Map();
  for (const source of sources) groups.set(source.group, [...(groups.get(source.group) || []), source]);
  return [...groups].map(([group, all]) => make("optgroup", { label: group }, all.map((source) =>
    make("option", { value: source.key, selected: source.key === chosen, disabled: !usable(source) }, usable(source) ? source.name : `${source.name} (kept no answers)`))));
}

const asked = (source) => source.asked;
let changed = "";  // the field that keeps the focus when the view is drawn anew

export function chooser(sources, { of = "", against = "" }) {
  const field = (name, words, empty, chosen, rest = {}) => make("label", { class: "field" }, words,
    make("select", { name, ...rest }, make("option", { value: "" }, empty), options(sources, chosen, asked)));
  const first = field("of", "Queries of", "this index", of);
  const second = field("against", "against", "nobody", against, { disabled: !of });
  const box = make("div", { class: "tools chooser", role: "group", "aria-label": "Whose queries" }, first, second);
  box.addEventListener("change", (event) => {
    changed = event.target.name;
    const [one, other] = ["of", "against"].map((name) => box.querySelector(`[name=${name}]`).value);
    go(link({ tab: "strips", of: one, against: one && one !== other ? other : "" }));
  });
  return box;
}

export function refocus(place, finished = true) {
  const found = changed && place.querySelector(`[name=${changed}]`);
  if (finished) changed = "";
  if (found) found.focus({ preventScroll: true });
}

// Two to choose and a button that opens them in Strips.
export function pair(sources, words) {
  const usable = sources.filter(asked);
  if (usable.length < 2) return null;
  const choose = (name, chosen) => make("select", { "aria-label": name }, options(usable, chosen));
  const [one, other] = [choose("First", usable[0].key), choose("Second", usable[1].key)];
  const note = make("span", { class: "small", role: "status" });
  const show = () => {
    if (one.value === other.value) { note.textContent = "Choose two different ones."; return; }
    go(link({ tab: "strips", of: one.value, against: other.value }));
  };
  return make("div", { class: "tools comparing", role: "group", "aria-label": words }, make("b", { class: "plain" }, words), one, make("span", { class: "soft" }, "against"), other, make("button", { type: "button", onclick: show }, "Compare"), note);
}
