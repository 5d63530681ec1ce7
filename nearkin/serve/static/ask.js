// Requests to the server; an error is a sentence. A bar shows that something takes long.
let waiting = 0;
let shown = 0;

function working(change) {
  waiting += change;
  clearTimeout(shown);
  const bar = document.getElementById("working");
  if (waiting) shown = setTimeout(() => { bar.hidden = false; }, 150);
  else bar.hidden = true;
}

export async function ask(address, facts = {}, { quietly = false, ...options } = {}) {
  const given = Object.entries(facts).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(given).toString();
  if (!quietly) working(1);
  try {
    let answer;
    try {
      answer = await fetch(query ? `${address}?${query}` : address, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not answer; see whether nearkin serve still runs.");
    }
    if (answer.ok) return options.binary ? answer.arrayBuffer() : answer.json();
    let sentence = "The server met an error; try again.";
    try { sentence = (await answer.json()).error || sentence; } catch { /* not from this server */ }
    throw new Error(sentence);
  } finally {
    if (!quietly) working(-1);
  }
}

export function say(sentence) { document.getElementById("say").textContent = sentence; }

export function complain(error) {
  if (error && error.name === "AbortError") return;
  const place = document.getElementById("alert");
  const text = document.createElement("span");
  text.textContent = error.message || String(error);
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.onclick = calm;
  place.replaceChildren(text, close);
  place.hidden = false;
}

export function calm() { document.getElementById("alert").hidden = true; }
