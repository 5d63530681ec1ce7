// Elements in one line: make("a", {href: "/", class: "x", onclick: f}, "text", child). Text is never read as HTML.
export function make(tag, facts = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const count = (number) => number.toLocaleString("en");
export const images = (number) => `${count(number)} ${number === 1 ? "image" : "images"}`;
