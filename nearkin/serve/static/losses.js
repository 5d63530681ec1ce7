// Losses: how much each one cares about a pair, from its own code, with its settings to play with.
import { ask, complain } from "./ask.js";
import { link, state } from "./address.js";
import { make } from "./dom.js";
import { chart } from "./chart.js";

const spoken = (name) => name.replaceAll("_", " ");
const LARGE = { width: 640, height: 380, large: true };

export async function show(place, facts) {
  let known;
  try {
    known = (await ask("/api/losses")).losses;
  } catch (error) { complain(error); return null; }
  const wanted = state().loss || facts.loss;
  const chosen = known.find((loss) => loss.name === wanted) || known[0];
  let closed = false;
  const rooms = known.map((loss) => make("div", { class: "room" }));
  place.replaceChildren(
    make("h1", {}, "How much a loss cares about a pair"),
    make("p", { class: "lead" }, "The weight that a loss gives a pair of images against how similar they are: a large one moves the pair strongly, a negative one moves it the wrong way. Computed by the code that trains, in a fixed batch of 4 classes."),
    played(chosen),
    make("ul", { class: "all", "aria-label": "All losses" }, known.map((loss, at) => make("li", {},
      make("a", { class: "card", href: link({ tab: "losses", loss: loss.name }), "aria-current": loss === chosen ? "true" : null }, make("b", {}, spoken(loss.name)), rooms[at])))));
  (async () => {
    for (const [at, loss] of known.entries()) {
      if (closed) return;
      try {
        const curve = await ask("/api/curve", { loss: loss.name }, { quietly: true });
        rooms[at].replaceChildren(chart(curve, `Weights of ${spoken(loss.name)}`));
      } catch (error) { rooms[at].textContent = error.message; }
    }
  })();
  return () => { closed = true; };
}

function played(loss) {
  const given = {};
  const figure = make("div", {});
  const note = make("p", { class: "small", role: "status" });
  let turn = 0;
  async function draw() {
    const mine = ++turn;
    try {
      const curve = await ask("/api/curve", { loss: loss.name, settings: JSON.stringify(given) }, { quietly: true });
      if (mine !== turn) return;
      figure.replaceChildren(chart(curve, `Weight of a positive and a negative pair under ${spoken(loss.name)} against their similarity`, LARGE));
      note.textContent = "";
    } catch (error) { if (mine === turn) note.textContent = error.message; }
  }
  let later = 0;
  const change = (name, value) => { given[name] = value; clearTimeout(later); later = setTimeout(draw, 40); };
  const fields = loss.settings.map((setting) => (setting.options ? choice(setting, change) : slider(setting, change)));
  const reset = make("button", { type: "button", onclick: () => {
    for (const name of Object.keys(given)) delete given[name];
    for (const field of fields) field.dispatchEvent(new Event("reset"));
    draw();
  } }, "Defaults");
  draw();
  return make("section", { class: "card loss", "aria-label": spoken(loss.name) },
    make("div", {}, figure, make("ul", { class: "legend" }, make("li", {}, "positive pair, same class"), make("li", {}, "negative pair, two classes"))),
    make("div", {}, make("h2", {}, spoken(loss.name)), make("p", { class: "soft small" }, loss.about),
      fields.length ? make("div", { class: "sliders" }, fields, make("p", {}, reset)) : make("p", { class: "small" }, "It has no settings to change."), note));
}

function slider({ name, value, low, high, step }, change) {
  const shown = make("span", { class: "value" }, String(value));
  const input = make("input", { type: "range", "aria-label": spoken(name), min: low, max: high, step, value });
  input.addEventListener("input", () => { shown.textContent = Number(Number(input.value).toPrecision(4)); change(name, Number(input.value)); });
  const field = make("label", { class: "slider" }, make("span", {}, spoken(name)), shown, input);
  field.addEventListener("reset", () => { input.value = value; shown.textContent = String(value); });
  return field;
}

function choice({ name, value, options }, change) {
  const select = make("select", { "aria-label": spoken(name) }, options.map((option) => make("option", { value: option, selected: option === value }, option)));
  select.addEventListener("change", () => change(name, select.value));
  const field = make("label", { class: "field" }, spoken(name), select);
  field.addEventListener("reset", () => { select.value = value; });
  return field;
}
