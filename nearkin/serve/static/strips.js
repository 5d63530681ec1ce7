// Strips: the queries that fail worst, each with what it found instead.
import { ask, complain } from "./ask.js";
import { link, state } from "./address.js";
import { count, images, make } from "./dom.js";
import { grid } from "./tiles.js";

export async function show(place, facts) {
  if (!facts.classes.length) {
    place.replaceChildren(make("div", { class: "card empty" }, make("h1", {}, "Strips need classes"), make("p", {}, "No image of this index has a class, so nothing can be right or wrong. Add a folder with one folder for each class.")));
    return;
  }
  place.replaceChildren(make("p", { class: "card empty" }, `Every image asks for its neighbours, ${images(facts.images)} in all. This can take a little while.`));
  try {
    const wanted = Math.min(200, Number(state().count) || 12);
    const found = await ask("/api/worst", { count: wanted });
    const right = found.asked - found.failed;
    place.replaceChildren(
      make("h1", {}, "Worst queries first"),
      make("p", { class: "lead" }, `${found.whole ? "Every image that has a class" : `A sample of ${images(found.asked)}`} asked for its own neighbours: for ${count(right)} of ${count(found.asked)} the nearest is of the same class. Below are the other ${count(found.failed)}, those with the fewest right neighbours and the surest mistakes first.`),
      found.queries.length
        ? make("ol", { class: "strips" }, found.queries.map(strip))
        : make("p", { class: "card empty" }, "No query fails: the nearest image is of the same class for all that have one."),
      found.queries.length === wanted && wanted < 200 ? make("p", { class: "center" }, make("a", { class: "button", href: link({ tab: "strips", count: Math.min(200, wanted + 24) }) }, "Show more")) : "");
  } catch (error) {
    place.replaceChildren(make("p", { class: "card empty" }, error.message));
    complain(error);
  }
}

export function strip(query) {
  return make("li", { class: "card strip" }, make("div", { class: "query" }, grid([query])), grid(query.hits, {}, true));
}
