// The doctor: images that look as if their class were wrong, images that are there twice, and images seen in training.
import { ask, complain } from "./ask.js";
import { state } from "./address.js";
import { images, make } from "./dom.js";
import { leaks } from "./leaks.js";
import { grid } from "./tiles.js";
import { strip } from "./strips.js";

export async function show(place, facts) {
  const waiting = make("p", { class: "card empty" }, `Every image asks for its neighbours, ${images(facts.images)} in all. This can take a little while.`);
  const body = make("div", {}, waiting);
  place.replaceChildren(make("h1", {}, "What looks wrong"), make("p", { class: "lead" }, "A finding is a hint, not a verdict: look at the pictures. Nothing is changed."), body);
  let leave = null;
  if (facts.runs) {
    try {
      const found = leaks((await ask("/api/sources")).sources, state().of || "");
      leave = found.leave;
      if (state().of) body.before(found.box); else place.append(found.box);  // what was asked for comes first
    } catch (error) { complain(error); }
  }
  ask("/api/doubts", { count: 48 }).then((found) => body.replaceChildren(...doubts(found, facts)), (error) => {
    waiting.textContent = error.message;
    complain(error);
  });
  return leave;
}

function doubts(found, facts) {
  const whole = found.whole ? "every image" : `a sample of ${images(found.asked)}`;
  return [
    make("h2", { class: "part" }, "Far from their class, near another"),
    make("p", { class: "lead" }, `Drawn from the neighbours of ${whole}.`),
    found.doubtful.length ? make("ol", { class: "strips" }, found.doubtful.map(doubtful)) : make("p", { class: "card empty" }, facts.classes.length ? "No image looks like another class than its own." : "No image has a class, so none can look like another."),
    make("h2", { class: "part" }, "The same image twice"),
    found.doubles.length ? make("ul", { class: "pairs" }, found.doubles.map(double)) : make("p", { class: "card empty" }, "No two images are the same.")];
}

function doubtful(image) {
  const shown = strip(image);
  shown.firstChild.append(make("p", { class: "small" }, "looks like ", make("b", {}, image.like), make("span", { class: "soft" }, ` ${Math.round(image.share * 100)} % of its neighbours`)));
  return shown;
}

function double(pair) {
  const [one, other] = pair.images;
  const conflict = one.label && other.label && one.label !== other.label;
  return make("li", { class: "card" }, grid(pair.images), make("p", { class: "small soft" }, `similarity ${pair.similarity.toFixed(4)}`, conflict ? make("b", {}, `, in two classes: ${one.label} and ${other.label}`) : null));
}
