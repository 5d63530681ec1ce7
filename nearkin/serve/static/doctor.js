// The doctor: images that look as if their class were wrong, and images that are there twice.
import { ask, complain } from "./ask.js";
import { images, make } from "./dom.js";
import { grid } from "./tiles.js";
import { strip } from "./strips.js";

export async function show(place, facts) {
  place.replaceChildren(make("p", { class: "card empty" }, `Every image asks for its neighbours, ${images(facts.images)} in all. This can take a little while.`));
  try {
    const found = await ask("/api/doubts", { count: 48 });
    const whole = found.whole ? "every image" : `a sample of ${images(found.asked)}`;
    place.replaceChildren(
      make("h1", {}, "What looks wrong"),
      make("p", { class: "lead" }, `Drawn from the neighbours of ${whole}. A finding is a hint, not a verdict: look at the pictures. Nothing is changed.`),
      make("h2", { class: "part" }, "Far from their class, near another"),
      found.doubtful.length ? make("ol", { class: "strips" }, found.doubtful.map(doubtful)) : make("p", { class: "card empty" }, facts.classes.length ? "No image looks like another class than its own." : "No image has a class, so none can look like another."),
      make("h2", { class: "part" }, "The same image twice"),
      found.doubles.length ? make("ul", { class: "pairs" }, found.doubles.map(double)) : make("p", { class: "card empty" }, "No two images are the same."));
  } catch (error) {
    place.replaceChildren(make("p", { class: "card empty" }, error.message));
    complain(error);
  }
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

