// Two curves against similarity, as SVG: solid for positive pairs, dashed for negative ones.
const SPACE = "http://www.w3.org/2000/svg";

export function drawn(tag, facts, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(facts)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function ticks(low, high, parts = 4) {
  const raw = (high - low) / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(Math.abs(value) < step * 1e-6 ? 0 : value);
  return found;
}

export function chart(curve, title, { width = 320, height = 200, large = false } = {}) {
  const [left, right, top, bottom] = large ? [56, 14, 14, 40] : [36, 6, 6, 20];
  const values = [...curve.positive, ...curve.negative].filter((value) => value !== null);
  let [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  if (high - low < 1e-9) high = low + 1;
  const x = (value) => left + ((value + 1) / 2) * (width - left - right);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
  const line = (series) => {
    let pen = "M";
    let path = "";
    series.forEach((value, at) => {
      if (value === null) { pen = "M"; return; }
      path += `${pen}${x(curve.similarity[at]).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    });
    return path;
  };
  const marks = [];
  for (const value of ticks(low, high)) {
    marks.push(drawn("line", { class: value === 0 ? "zero" : "rule", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    marks.push(drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(3)))));
  }
  for (const value of large ? [-1, -0.5, 0, 0.5, 1] : [-1, 0, 1]) marks.push(drawn("text", { x: x(value), y: height - bottom + 15, "text-anchor": value === -1 ? "start" : value === 1 ? "end" : "middle" }, String(value)));
  if (large) marks.push(drawn("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "similarity of the pair"));
  return drawn("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, ...marks,
    drawn("path", { class: "positive", d: line(curve.positive) }), drawn("path", { class: "negative", d: line(curve.negative) }));
}
