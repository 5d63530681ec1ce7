// Runs: the board of a benchmark with intervals and groups, and how every run went.
import { ask, complain } from "./ask.js";
import { make } from "./dom.js";
import { compare } from "./compare.js";
import { drawn, ticks } from "./chart.js";

const percent = (value) => (value === null ? "" : (100 * value).toFixed(1));

export async function show(place, facts) {
  try {
    const found = await ask("/api/runs");
    place.replaceChildren(
      make("h1", {}, "Runs"),
      make("p", { class: "lead" }, found.sentence, facts.report ? " " : null, facts.report ? make("a", { href: "/report" }, "See the whole report.") : null),
      make("div", { class: "runs" }, found.experiments.map((one, place) => [experiment(one, found.metric), one.board.length > 1 ? compare(one, place) : null]), remarks("What this does not say", found.notes), remarks("Runs that failed", found.failed)));
  } catch (error) {
    place.replaceChildren(make("p", { class: "card empty" }, error.message));
    complain(error);
  }
}

function remarks(title, sentences) {
  return sentences.length ? make("section", { class: "card" }, make("h2", {}, title), make("ul", {}, sentences.map((sentence) => make("li", {}, sentence)))) : null;
}

function experiment({ name, board, reason, curves }, metric) {
  const values = board.flatMap(({ low, high, score }) => [low, high, score]).filter((value) => value !== null);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(most - least, 1e-3);
  const at = (value) => `${4 + (92 * (value - least)) / room}%`;
  const rows = board.map(({ label, colour, score, low, high, letters, runs, spread }) => {
    const span = make("td", { class: `span c${colour}`, "aria-hidden": "true" });
    if (low !== null) {
      const bar = make("i");
      bar.style.left = at(low);
      bar.style.width = `${(92 * (high - low)) / room}%`;
      span.append(bar);
    }
    const dot = make("b");
    dot.style.left = at(score);
    span.append(dot);
    const between = low === null ? (spread === null ? "" : `± ${percent(spread)}`) : `${percent(low)} to ${percent(high)}`;
    return make("tr", {}, make("th", { scope: "row" }, label), make("td", {}, make("b", { class: "plain" }, percent(score))), make("td", {}, between), span, make("td", {}, letters), make("td", {}, String(runs)));
  });
  return make("section", { class: "card" }, make("h2", {}, name),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Board of ${name}` }, make("table", { class: "board" },
      make("thead", {}, make("tr", {}, ["Loss", `${metric}, %`, "95 % interval", "", "Group", "Runs"].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, rows))),
    make("p", { class: "soft small" }, reason || "Losses that share a letter cannot be told apart."),
    curves.map((part) => lines(part, metric)));
}

function lines({ on, lines: all }, metric) {
  const [width, height, left, bottom] = [640, 280, 44, 34];
  const epochs = all.flatMap(({ points }) => points.map(([epoch]) => epoch));
  const values = all.flatMap(({ points }) => points.map(([, value]) => 100 * value));
  const [first, last] = [Math.min(...epochs), Math.max(...epochs)];
  const low = Math.min(...values);
  const high = Math.max(...values, low + 1e-3);
  const x = (epoch) => left + ((epoch - first) / Math.max(1, last - first)) * (width - left - 12);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - 10);
  const marks = ticks(low, high).flatMap((value) => [
    drawn("line", { class: "rule", x1: left, x2: width - 12, y1: y(value), y2: y(value) }),
    drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(3))))]);
  for (const epoch of new Set([first, last])) marks.push(drawn("text", { x: x(epoch), y: height - bottom + 16, "text-anchor": epoch === first ? "start" : "end" }, `epoch ${epoch}`));
  const paths = all.map(({ label, seed, colour, points }) => drawn("path", { class: `own c${colour}`, d: points.map(([epoch, value], at) => `${at ? "L" : "M"}${x(epoch).toFixed(1)} ${y(100 * value).toFixed(1)}`).join("") }, drawn("title", {}, `${label}, seed ${seed}`)));
  const names = [...new Map(all.map(({ label, colour }) => [label, colour]))];
  return make("figure", { class: "lines" }, make("figcaption", { class: "soft small" }, `${metric} in %, ${on}, every run`),
    drawn("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${metric} of every run by epoch, ${on}` }, ...marks, ...paths),
    make("ul", { class: "names" }, names.map(([label, colour]) => make("li", { class: `c${colour}` }, make("i"), label))));
}
