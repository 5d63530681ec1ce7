// A score with its interval as a dot on a bar, all rows on one scale.
import { make } from "./dom.js";

export const percent = (value) => (value === null || value === undefined ? "" : (100 * value).toFixed(1));

// `scored`: every { value, low, high } of the table; returns what draws the cell of one of them.
export function gauge(scored) {
  const values = scored.flatMap(({ low, high, value }) => [low, high, value]).filter((value) => value !== null && value !== undefined);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(most - least, 1e-3);
  const at = (value) => `${4 + (92 * (value - least)) / room}%`;
  return (score, colour) => {
    const cell = make("td", { class: `span c${colour}`, "aria-hidden": "true" });
    if (!score || score.value === null) return cell;
    if (score.low !== null) {
      const bar = make("i");
      bar.style.left = at(score.low);
      bar.style.width = `${(92 * (score.high - score.low)) / room}%`;
      cell.append(bar);
    }
    const dot = make("b");
    dot.style.left = at(score.value);
    cell.append(dot);
    return cell;
  };
}
