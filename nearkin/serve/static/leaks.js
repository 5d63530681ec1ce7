// Leaks: images that show the same picture as one that a run trained on, side by side with it.
import { ask, say } from "./ask.js";
import { go, link } from "./address.js";
import { count, images, make } from "./dom.js";
import { progress, until } from "./progress.js";
import { options } from "./sources.js";
import { grid } from "./tiles.js";

const STEP = 24;

// A section that offers the search, or goes through with it where the address names a run; `leave` ends the waiting.
export function leaks(sources, of) {
  const known = sources.filter(({ trained }) => trained);
  const box = make("section", { "aria-label": "Seen in training" });
  const title = make("h2", { class: "part" }, "Seen in training");
  if (!known.length) {
    box.append(title, make("p", { class: "card empty" }, "None of the runs has its settings at hand, so their training images are not known."));
    return { box, leave: null };
  }
  const select = make("select", { "aria-label": "Run whose training images are compared" }, options(known, of));
  const begin = make("button", { type: "button", onclick: () => go(link({ tab: "doctor", of: select.value })) }, "Compare");
  const body = make("div");
  box.append(title, make("p", { class: "lead" }, "Images of the index and of the test set that are nearly the same picture as a training image: stored anew, resized, brighter or mirrored. Parts cut out and turned pictures are not looked for."),
    make("div", { class: "tools", role: "group", "aria-label": "Training images" }, make("span", { class: "soft small" }, "With the training images of"), select, begin), body);
  if (!of) return { box, leave: null };
  let shown = STEP;
  const bar = progress();
  body.append(bar);
  bar.update({ said: "beginning" });
  const draw = (found) => {
    if (found.state === "going") { bar.update(found); return; }
    if (found.state === "failed") { body.replaceChildren(make("p", { class: "card empty" }, `The training images cannot be compared: ${found.said}.`)); return; }
    const further = async () => {
      shown = Math.min(200, shown + 2 * STEP);
      try { draw(await ask("/api/leaks", { of, count: shown })); } catch (error) { body.append(make("p", { role: "alert" }, error.message)); }
    };
    body.replaceChildren(...["test", "index"].flatMap((kind) => group(kind, found, of)),
      ["test", "index"].some((kind) => found[kind] && found[kind].total > found[kind].pairs.length) && shown < 200 ? make("p", { class: "center" }, make("button", { type: "button", onclick: further }, "Show more")) : "");
    say(`${count(leaking(found.test))} test images and ${count(leaking(found.index))} images of the index are also training images.`);
  };
  const leave = until(() => ask("/api/leaks", { of, count: shown }, { quietly: true }), ({ state }) => state !== "going", draw,
    (error) => body.replaceChildren(make("p", { class: "card empty", role: "alert" }, error.message)));
  return { box, leave };
}

const leaking = (found) => (found ? found.images : 0);

function group(kind, found, of) {
  const own = found[kind];
  const title = make("h3", { class: "part" }, kind === "test" ? `Test images of ${found.data}` : "Images of the index");
  if (!own) return [title, make("p", { class: "card empty" }, kind === "test" ? "The data set has no test images." : "The index has no images.")];
  const plain = own.plain || found.plain ? ` ${count(own.plain + found.plain)} of both are too plain to be compared.` : "";
  const checked = `Every pair of ${images(own.compared)} and ${count(found.training)} training ${found.training === 1 ? "image" : "images"} was compared.${plain}`;
  if (!own.total) return [title, make("p", { class: "card empty" }, `None shows the same picture as a training image. ${checked}`)];
  const expected = kind === "index" ? " That is as it should be where the index holds the training images themselves." : "";
  const rest = own.total > own.pairs.length ? ` The ${count(own.pairs.length)} most alike are shown.` : "";
  return [title,
    make("p", { class: "lead" }, make("b", {}, count(own.images)), ` of ${images(own.compared)} ${own.images === 1 ? "shows" : "show"} the same picture as a training image, in ${count(own.total)} ${own.total === 1 ? "pair" : "pairs"}.${expected} ${checked}${rest}`),
    make("ul", { class: "pairs leaks" }, own.pairs.map((pair) => shownPair(pair, kind, of)))];
}

function shownPair({ image, training, alike, mirrored }, kind, of) {
  const other = (part, { row, ...rest }) => ({ ...rest, id: row, source: `/${part}-image/${row}?of=${encodeURIComponent(of)}` });
  const left = kind === "index" ? image : other("test", image);
  const conflict = image.label && training.label && image.label !== training.label;
  return make("li", { class: "card" },
    make("div", { class: "heads small soft", "aria-hidden": "true" }, make("span", {}, kind === "index" ? "index" : "test"), make("span", {}, "training")),
    grid([left, other("training", training)]),
    make("p", { class: "small soft" }, `likeness ${alike.toFixed(3)}${mirrored ? ", mirrored" : ""}`, conflict ? make("b", {}, `, in two classes: ${image.label} and ${training.label}`) : null));
}
