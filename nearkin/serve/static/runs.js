// Runs: the board of a benchmark with intervals and groups, runs that were given, and how each of them went.
import { ask, complain } from "./ask.js";
import { link } from "./address.js";
import { make } from "./dom.js";
import { curves } from "./curves.js";
import { folders } from "./folders.js";
import { gauge, percent } from "./gauge.js";
import { pair } from "./sources.js";

const [AGAIN, SOON] = [4000, 600];  // milliseconds between two looks at runs that go on, and while intervals are worked out

export async function show(place, facts) {
  place.replaceChildren(make("p", { class: "card empty" }, "The runs are read …"));
  let found;
  try {
    found = await ask("/api/runs");
  } catch (error) {
    place.replaceChildren(make("p", { class: "card empty" }, error.message));
    complain(error);
    return null;
  }
  const { bench } = found;
  const given = make("div", { class: "runs" }, found.folders ? folders(found.folders) : null);
  const lead = bench ? make("p", { class: "lead" }, bench.sentence, facts.report ? " " : null, facts.report ? make("a", { href: "/report" }, "See the whole report.") : null) : null;
  place.replaceChildren(...[make("h1", {}, "Runs"), lead || make("p", { class: "lead" }, "What each run measured, and how it got there."),
    make("div", { class: "runs" }, bench ? bench.experiments.map((one) => experiment(one, bench.metric)) : null, given,
      bench ? [remarks("What this does not say", bench.notes), remarks("Runs that failed", bench.failed), remarks("Runs that are missing", bench.missing)] : null)]);
  return found.folders && (found.folders.open || found.folders.pending) ? followed(given, found.folders) : null;
}

// Looked at again now and then; drawn anew only where something has changed and nothing is being used.
function followed(place, first) {
  let before = first;
  let timer = 0;
  let ended = false;
  const again = () => { if (!ended && (before.open || before.pending)) timer = setTimeout(look, before.pending ? SOON : AGAIN); };
  const look = async () => {
    if (!document.hidden && !place.contains(document.activeElement)) {
      try {
        const now = (await ask("/api/runs", {}, { quietly: true })).folders;
        if (JSON.stringify(now) !== JSON.stringify(before)) {
          const at = [...place.querySelectorAll(".scroll")].map((element) => element.scrollLeft);
          place.replaceChildren(folders(now));
          place.querySelectorAll(".scroll").forEach((element, number) => { element.scrollLeft = at[number] || 0; });
        }
        before = now;
      } catch { /* the next look may tell */ }
    }
    again();
  };
  again();
  return () => { ended = true; clearTimeout(timer); };
}

function remarks(title, sentences) {
  return sentences.length ? make("section", { class: "card" }, make("h2", {}, title), make("ul", {}, sentences.map((sentence) => make("li", {}, sentence)))) : null;
}

function experiment({ name, board, reason, curves: parts }, metric) {
  const span = gauge(board.map(({ low, high, score }) => ({ low, high, value: score })));
  const rows = board.map(({ key, asked, label, colour, score, low, high, letters, runs, spread }) => {
    const between = low === null ? (spread === null ? "" : `± ${percent(spread)}`) : `${percent(low)} to ${percent(high)}`;
    const title = asked ? make("a", { href: link({ tab: "strips", of: key }), title: `Worst queries of ${label}` }, label) : label;
    return make("tr", { class: asked ? "linked" : null }, make("th", { scope: "row", class: `c${colour}` }, make("i", { class: "dot", "aria-hidden": "true" }), title), make("td", {}, make("b", { class: "plain" }, percent(score))), make("td", {}, between), span({ value: score, low, high }, colour), make("td", {}, letters), make("td", {}, String(runs)));
  });
  return make("section", { class: "card" }, make("h2", {}, name),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Board of ${name}` }, make("table", { class: "board" },
      make("thead", {}, make("tr", {}, ["Loss", `${metric}, %`, "95 % interval", "", "Group", "Runs"].map((text) => make("th", { scope: "col" }, text || make("span", { class: "unseen" }, "interval drawn"))))),
      make("tbody", {}, rows))),
    make("p", { class: "soft small" }, reason || "Losses that share a letter cannot be told apart.", board.some(({ asked }) => asked) ? " A loss opens the worst queries of its first run." : ""),
    pair(board.map(({ key, label, asked }) => ({ key, asked, name: label, group: name })), "Side by side"),
    make("div", { class: "charts" }, parts.map((part) => curves({ ...part, metric }))));
}
