// Runs that were given: one row each with its test measures, the settings in which they differ, and their curves.
import { make } from "./dom.js";
import { link } from "./address.js";
import { curves } from "./curves.js";
import { progress } from "./progress.js";
import { pair } from "./sources.js";
import { gauge, percent } from "./gauge.js";

export function folders({ runs, settings, curves: parts, pending }) {
  const measures = [...new Set(runs.flatMap(({ measures: own }) => own.map(({ name }) => name)))];
  const tested = runs.filter(({ on }) => on === "test").map(({ measures: own }) => own[0]).filter(Boolean);
  const span = gauge(tested);
  const first = measures[0];
  const columns = ["Run", ...measures.flatMap((name) => (name === first ? [`${name}, %`, ""] : [`${name}, %`])), ...settings.map(({ name }) => name.replaceAll("_", " ").replace("settings.", ": "))];
  const rows = runs.map((run) => make("tr", { class: run.asked ? "linked" : null },
    make("th", { scope: "row", class: `c${run.colour}` }, make("i", { class: "dot", "aria-hidden": "true" }),
      run.asked ? make("a", { href: link({ tab: "strips", of: run.key }), title: `Worst queries of ${run.name}` }, run.name) : run.name, make("small", { class: `state ${run.state}` }, run.said)),
    measures.flatMap((name) => cells(run, name, name === first, span)),
    settings.map(({ values }) => make("td", {}, values[run.name]))));
  const open = runs.some(({ on }) => on === "validation");
  const bar = pending ? progress() : null;
  if (bar) bar.update({ said: "intervals are worked out", done: runs.length - pending, total: runs.length });
  const reasons = [...new Set(runs.map(({ why }) => why).filter(Boolean))];
  return make("section", { class: "card" }, make("h2", {}, runs.length === 1 ? "One run" : `${runs.length} runs`),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Measures of the runs" }, make("table", { class: "board folders" },
      make("thead", {}, make("tr", {}, columns.map((text) => make("th", { scope: "col" }, text || make("span", { class: "unseen" }, "interval drawn"))))),
      make("tbody", {}, rows))),
    make("p", { class: "soft small" }, "Test classes, with 95 % intervals from classes drawn anew. A run opens its worst queries.", open ? " In brackets: validation classes, where there are no test measures yet." : "", settings.length ? " Settings are those in which the runs differ." : runs.length > 1 ? " The runs have the same settings." : ""),
    bar,
    reasons.map((sentence) => make("p", { class: "small" }, sentence)),
    pair(runs.map((run) => ({ ...run, group: "Runs" })), "Side by side"),
    make("div", { class: "charts" }, parts.map(curves)));
}

function cells(run, name, first, span) {
  const found = run.measures.find((measure) => measure.name === name);
  const drawn = first ? [span(run.on === "test" ? found : null, run.colour)] : [];
  if (!found) return [make("td", { class: "soft" }, "–"), ...drawn];
  if (run.on !== "test") return [make("td", { class: "soft" }, `(${percent(found.value)})`), ...drawn];
  const between = found.low === null ? null : make("small", { class: "soft" }, `${percent(found.low)} to ${percent(found.high)}`);
  return [make("td", { class: "measure" }, make("b", {}, percent(found.value)), between), ...drawn];
}
