// Queries of runs with their pictures, where these can be read: those of one, or of two side by side.
import { ask, say } from "./ask.js";
import { count, make } from "./dom.js";
import { progress, until } from "./progress.js";
import { grid } from "./tiles.js";

const percent = (value) => (100 * value).toFixed(1);
const signed = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(1)}`;

export function tallied({ one, other, tally, difference }) {
  const found = [make("p", { class: "lead" },
    `Only ${one} is right on `, make("b", {}, count(tally.one)), `, only ${other} on `, make("b", {}, count(tally.other)),
    `, both on ${count(tally.both)}, neither on ${count(tally.neither)} queries.`,
    difference ? ` R@1 of ${one} less that of ${other}: ${signed(difference.value)} points, 95 % interval ${signed(difference.low)} to ${signed(difference.high)} over ${count(difference.classes)} test classes.` : "",
    " Below are those on which they differ, by turns from both sides.")];
  return found;
}

export function failing({ name, asked, failed }) {
  const right = asked - failed;
  return [make("p", { class: "lead" }, `${name} answered ${count(asked)} queries of its test set: for ${count(right)} (${asked ? percent(right / asked) : 0} %) the nearest image is of the same class. Below are the other ${count(failed)}, those with the fewest right neighbours and the surest mistakes first.`)];
}

// Draws queries with the pictures of the run `of`, or their names until these are read: then `again` asks anew, since more
// classes are known by then. The returned function ends the waiting.
export function draw(place, { queries: first, pictures, one, other }, of, again) {
  const list = (ready, queries = first) => {
    const shown = ({ row, ...rest }) => ({ ...rest, id: row, name: `test image ${row}`, source: ready ? `/test-image/${row}?of=${encodeURIComponent(of)}` : "" });
    const found = queries.map((query) => make("li", { class: "card strip" },
      make("div", { class: "query" }, grid([shown({ row: query.row, label: query.label })])),
      query.hits ? grid(query.hits.map(shown), {}, true)
        : make("div", { class: "both" }, make("h3", {}, one), grid(query.one.map(shown), {}, true), make("h3", {}, other), grid(query.other.map(shown), {}, true))));
    return make("ol", { class: "strips" }, found);
  };
  const told = make("div");
  const why = (sentence) => make("p", { class: "card small soft note-card" }, `Pictures are not shown: ${sentence}.`);
  place.replaceChildren(told, list(pictures.state === "ready"));
  if (!first.length || pictures.state === "ready") return null;
  if (pictures.state === "failed") { told.replaceChildren(why(pictures.said)); return null; }
  const bar = progress();
  bar.update(pictures);
  told.replaceChildren(bar);
  return until(() => ask("/api/pictures", { of }, { quietly: true }), ({ state }) => state !== "reading", (found) => {
    if (found.state === "reading") bar.update(found);
    else if (found.state === "failed") told.replaceChildren(why(found.said));
    else {
      place.replaceChildren(list(true));
      say("Pictures are shown.");
      again().then(({ queries }) => place.replaceChildren(list(true, queries)), () => { /* what is shown stays */ });
    }
  }, (error) => told.replaceChildren(why(error.message)));
}
