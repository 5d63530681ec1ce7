// Strips: the queries that fail worst, each with what it found instead; of the index, of a run, or of two runs side by side.
import { ask, complain } from "./ask.js";
import { link, state } from "./address.js";
import { count, images, make } from "./dom.js";
import { draw, failing, tallied } from "./compare.js";
import { chooser, named, refocus } from "./sources.js";
import { grid } from "./tiles.js";

export async function show(place, facts) {
  const { of = "", against = "", count: given } = state();
  const wanted = Math.max(1, Math.min(200, Math.round(Number(given)) || 12));
  let sources = [];
  try {
    if (facts.runs) sources = (await ask("/api/sources")).sources;
  } catch (error) { complain(error); }
  const tools = facts.runs ? chooser(sources, { of, against }) : "";
  const head = (title) => [make("h1", {}, title), tools];
  const told = (sentence, finished = true) => { place.replaceChildren(...head("Worst queries first"), make("p", { class: "card empty" }, sentence)); refocus(place, finished); };
  try {
    if (of && against) return await compared(place, head(`${named(sources, of)} against ${named(sources, against)}`), of, against, wanted);
    if (of) return await single(place, head("Worst queries first"), of, wanted);
    if (!facts.classes.length) {
      place.replaceChildren(...(tools ? [tools] : []), make("div", { class: "card empty" }, make("h1", {}, "Strips need classes"), make("p", {}, "No image of this index has a class, so nothing can be right or wrong. Add a folder with one folder for each class.")));
      refocus(place);
      return null;
    }
    told(`Every image asks for its neighbours, ${images(facts.images)} in all. This can take a little while.`, false);
    return await own(place, head("Worst queries first"), wanted);
  } catch (error) {
    told(error.message);
    complain(error);
    return null;
  }
}

async function own(place, head, wanted) {
  const found = await ask("/api/worst", { count: wanted });
  const right = found.asked - found.failed;
  place.replaceChildren(...head,
    make("p", { class: "lead" }, `${found.whole ? "Every image that has a class" : `A sample of ${images(found.asked)}`} asked for its own neighbours: for ${count(right)} of ${count(found.asked)} the nearest is of the same class. Below are the other ${count(found.failed)}, those with the fewest right neighbours and the surest mistakes first.`),
    found.queries.length
      ? make("ol", { class: "strips" }, found.queries.map(strip))
      : make("p", { class: "card empty" }, "No query fails: the nearest image is of the same class for all that have one."),
    more(found.queries.length, found.failed, wanted, {}));
  refocus(place);
  return null;
}

async function single(place, head, of, wanted) {
  place.replaceChildren(...head, make("p", { class: "card empty" }, "The answers of this run are read …"));
  refocus(place, false);
  const question = (options) => ask("/api/failing", { of, count: wanted }, options);
  const found = await question();
  const body = make("div");
  place.replaceChildren(...head, ...failing(found), body, more(found.queries.length, found.failed, wanted, { of }));
  refocus(place);
  if (!found.queries.length) body.append(make("p", { class: "card empty" }, "No query of this run fails."));
  return draw(body, found, of, () => question({ quietly: true }));
}

async function compared(place, head, of, against, wanted) {
  place.replaceChildren(...head, make("p", { class: "card empty" }, "The answers of both runs are read …"));
  refocus(place, false);
  const question = (options) => ask("/api/compare", { one: of, other: against, count: wanted }, options);
  const found = await question();
  const body = make("div");
  const total = found.tally.one + found.tally.other;
  place.replaceChildren(...head, ...tallied(found), body, more(found.queries.length, total, wanted, { of, against }));
  refocus(place);
  if (!found.queries.length) body.append(make("p", { class: "card empty" }, "Both are right on the same queries, and wrong on the same."));
  return draw(body, found, of, () => question({ quietly: true }));
}

function more(shown, total, wanted, rest) {
  return shown < total && wanted < 200 ? make("p", { class: "center" }, make("a", { class: "button", href: link({ tab: "strips", ...rest, count: Math.min(200, wanted + 24) }) }, "Show more")) : "";
}

export function strip(query) {
  return make("li", { class: "card strip" }, make("div", { class: "query" }, grid([query])), grid(query.hits, {}, true));
}
