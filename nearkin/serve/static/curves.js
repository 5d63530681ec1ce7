// The measures of every run by epoch, as lines; a run with one epoch so far is a dot.
import { make } from "./dom.js";
import { drawn, ticks } from "./chart.js";

const short = (value) => String(Number(value.toPrecision(3)));

export function curves({ on, lines: all, metric, share = true }) {
  const [width, height] = innerWidth < 640 ? [340, 220] : [460, 250];  // letters keep their size on a phone
  const [left, right, bottom] = [40, 8, 30];
  const scale = share ? 100 : 1;
  const points = all.flatMap(({ points: own }) => own);
  const epochs = points.map(([epoch]) => epoch);
  const values = points.map(([, value]) => scale * value);
  const [first, last] = [Math.min(...epochs), Math.max(...epochs)];
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const spare = Math.max(most - least, Math.abs(most) * 0.02, 1e-3) * 0.04;
  const [low, high] = [least - spare, most + spare];
  const x = (epoch) => (last === first ? (left + width - right) / 2 : left + 6 + ((epoch - first) / (last - first)) * (width - left - right - 12));
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - 10);
  const levels = [4, 6, 9].map((parts) => ticks(low, high, parts)).find((found, at) => found.length > 2 || at === 2);
  const marks = levels.flatMap((value) => [
    drawn("line", { class: "rule", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value))]);
  for (const epoch of new Set([first, last])) marks.push(drawn("text", { x: x(epoch), y: height - bottom + 18, "text-anchor": first === last ? "middle" : epoch === first ? "start" : "end" }, `epoch ${epoch}`));
  const called = ({ label, seed }) => (seed === undefined ? label : `${label}, seed ${seed}`);
  const shapes = all.map((line) => {
    const { colour, dashed, points: own } = line;
    const ends = `${called(line)}: ${short(scale * own[own.length - 1][1])}`;
    const facts = { class: `own c${colour}${dashed ? " dashed" : ""}` };
    return own.length === 1
      ? drawn("circle", { ...facts, cx: x(own[0][0]), cy: y(scale * own[0][1]), r: 4 }, drawn("title", {}, ends))
      : drawn("path", { ...facts, d: own.map(([epoch, value], at) => `${at ? "L" : "M"}${x(epoch).toFixed(1)} ${y(scale * value).toFixed(1)}`).join("") }, drawn("title", {}, ends));
  });
  const names = [...new Map(all.map((line) => [line.label, line])).values()];
  const title = share ? `${metric} in %, ${on}` : `${metric} in ${on}`;
  const said = all.slice(0, 12).map((line) => `${called(line)} ends at ${short(scale * line.points[line.points.length - 1][1])}`).join("; ");
  return make("figure", { class: "lines" }, make("figcaption", { class: "soft small" }, `${title.charAt(0).toUpperCase()}${title.slice(1)}, every run`),
    drawn("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}, by epoch: ${said}` }, ...marks, ...shapes),
    make("ul", { class: "names" }, names.map(({ label, colour, dashed }) => make("li", { class: `c${colour}${dashed ? " dashed" : ""}` }, make("i"), label))));
}
