// The search: an image in, the images that look like it out.
import { ask, complain, say } from "./ask.js";
import { go, link, state } from "./address.js";
import { count, images, make } from "./dom.js";
import { crop } from "./crop.js";
import { grid } from "./tiles.js";
import { picker } from "./send.js";

const PAGE = 48;
const ORDERS = [["", "Similarity"], ["expansion", "Widened query"], ["reciprocal", "Mutual neighbours"]];
let latest = 0;

export async function show(place, facts) {
  const { id, query } = state();
  const turn = ++latest;
  try {
    const content = id || query ? await results(facts, id, query) : await start(facts);
    if (turn === latest) place.replaceChildren(...content);
  } catch (error) {
    if (turn !== latest) return;
    if (id || query) place.replaceChildren(make("div", { class: "card empty" }, make("h1", {}, "Nothing to show"), make("p", {}, error.message), make("a", { class: "button", href: "/" }, "Start again")));
    complain(error);
  }
}

async function start(facts) {
  const drop = make("section", { class: "drop", "aria-labelledby": "title" },
    make("h1", { id: "title" }, facts.images ? "Find images that look alike" : "This index is empty"),
    make("p", { class: "hint" }, facts.images
      ? `Drop or paste an image anywhere on this page, or choose a file. The nearest of ${images(facts.images)} come back; nothing is sent to any other site.`
      : "Add images with nearkin index add, then come back: this page sees them at once."),
    facts.images ? picker("Choose an image", "first") : null);
  if (!facts.images) return [drop];
  const samples = make("div");
  let seed = 0;
  async function draw() {
    const found = await ask("/api/sample", { seed });
    samples.replaceChildren(grid(found.images));
  }
  await draw();
  const more = make("button", { type: "button", onclick: () => { seed += 1; draw().then(() => say("Other images are shown."), complain); } }, "Show others");
  return [drop, make("section", { "aria-labelledby": "begin" }, make("div", { class: "head" }, make("h2", { id: "begin" }, "Or begin with one of these"), more), samples)];
}

async function results(facts, id, query) {
  const { label = "", again = "", k } = state();
  const wanted = Math.min(500, Number(k) || PAGE);
  const found = await ask("/api/search", { id, query, label, again, k: wanted });
  const keep = { label, again };
  const own = { id, query, ...keep };
  const source = id ? `/picture/${id}` : `/query/${query}`;
  say(`${images(found.hits.length)} found.`);
  return [make("div", { class: "found" },
    asked(found.query, source),
    make("section", { "aria-label": "Results" },
      make("div", { class: "tools" }, facts.classes.length ? filter(facts, own, label) : null, order(own, again)),
      summary(found, label),
      chips(found, own, label),
      found.hits.length ? grid(found.hits, keep, true) : make("p", { class: "card empty" }, "There is no other image to show."),
      found.hits.length === wanted && wanted < 500
        ? make("p", { class: "center" }, make("a", { class: "button", href: link({ ...own, k: Math.min(500, wanted + PAGE) }) }, "Show more"))
        : null))];
}

function asked(query, source) {
  const picture = make("img", { src: source, alt: query.label ? `The query, of class ${query.label}` : "The query" });
  picture.addEventListener("load", () => picture.classList.toggle("pixels", Math.max(picture.naturalWidth, picture.naturalHeight) < 120));
  const copy = make("button", { type: "button", onclick: () => share(copy) }, "Copy address");
  return make("aside", { class: "card asked", "aria-label": "The image searched for" },
    picture,
    make("div", {},
      make("h2", {}, query.label || (query.id === undefined ? "Your image" : query.name)),
      make("p", { class: "soft small" }, query.id === undefined ? "Its class is not known. It is kept until the server ends." : query.label ? query.name : "It has no class."),
      make("div", { class: "actions" },
        make("button", { type: "button", onclick: () => crop(source) }, "Crop"),
        copy,
        picker("Other image"))));
}

async function share(button) {
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
    say("The address is copied.");
    setTimeout(() => { button.textContent = "Copy address"; }, 1600);
  } catch {
    complain(new Error("The browser does not allow copying here; copy the address from its own bar."));
  }
}

function filter(facts, own, label) {
  const list = make("datalist", { id: "classes" }, facts.classes.map(([name, size]) => make("option", { value: name }, images(size))));
  const input = make("input", { type: "search", list: "classes", value: label, placeholder: "all classes", id: "filter", autocomplete: "off" });
  input.addEventListener("change", () => {
    const wanted = input.value.trim();
    if (wanted === label) return;
    if (wanted && !facts.classes.some(([name]) => name === wanted)) {
      complain(new Error(`No image of the index has the class “${wanted}”; choose one from the list.`));
      return;
    }
    go(link({ ...own, label: wanted }));
  });
  return [make("label", { class: "field" }, "Class", input), list];  // inside, the list would be read as part of the name
}

function order(own, again) {
  const select = make("select", { "aria-label": "Order" }, ORDERS.map(([value, text]) => make("option", { value, selected: value === again }, text)));
  select.addEventListener("change", () => go(link({ ...own, again: select.value })));
  return make("label", { class: "field" }, "Order", select);
}

function summary(found, label) {
  const judged = found.hits.filter((hit) => hit.right !== null);
  const first = judged.slice(0, 10);
  const parts = [make("span", { class: "soft small" }, `${images(found.hits.length)}${label ? ` of class ${label}` : ""} in ${found.milliseconds.toFixed(0)} ms`)];
  if (first.length && !label) {
    const right = first.filter((hit) => hit.right).length;
    parts.unshift(make("b", {}, `${right} of the first ${first.length}`), ` are of the same class, ${found.query.label}. `);
  }
  return make("p", { class: "summary" }, parts);
}

function chips(found, own, label) {
  if (label) return make("ul", { class: "chips" }, make("li", {}, make("button", { type: "button", "aria-pressed": "true", onclick: () => go(link({ ...own, label: "" })) }, `${label}  ✕`, make("span", { class: "unseen" }, "remove this filter"))));
  const sizes = new Map();
  for (const hit of found.hits) if (hit.label) sizes.set(hit.label, (sizes.get(hit.label) || 0) + 1);
  if (sizes.size < 2) return null;
  const most = [...sizes].sort((one, other) => other[1] - one[1]).slice(0, 8);
  return make("ul", { class: "chips", "aria-label": "Classes found; choose one to see only it" }, most.map(([name, size]) =>
    make("li", {}, make("button", { type: "button", onclick: () => go(link({ ...own, label: name })) }, name, make("small", {}, count(size))))));
}
