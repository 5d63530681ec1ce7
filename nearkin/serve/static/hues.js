// Colours of points. Classes beyond the eight of the palette repeat in other strengths; hover and lists name them.
function parsed(text) {
  const number = parseInt(text.trim().slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const mixed = (one, other, share) => one.map((value, at) => Math.round(value + (other[at] - value) * share));

function themed(name) { return parsed(getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)); }

export function ofClass(place) {
  if (place < 0) return packed(themed("axis"));
  const base = themed(`s${place % 8}`);
  const turn = Math.floor(place / 8) % 3;
  return packed(turn === 0 ? base : mixed(base, themed(turn === 1 ? "card" : "ink"), 0.35));
}

// From miss to hit, over the soft grey in the middle.
export function ofRecall(value) {
  if (value === undefined) return packed(themed("line"));
  const [low, middle, high] = [themed("miss"), themed("axis"), themed("hit")];
  return packed(value < 0.5 ? mixed(low, middle, value * 2) : mixed(middle, high, value * 2 - 1));
}
