// How far a long piece of work is: a bar with words, and asking again until it is done.
import { count, make } from "./dom.js";

export function progress() {
  const words = make("span", {});
  const bar = make("progress", { "aria-label": "How far it is" });
  const box = make("p", { class: "progress small" }, bar, words);
  box.update = ({ said = "", done = 0, total = 0 }) => {
    words.textContent = `${said.charAt(0).toUpperCase()}${said.slice(1)}${total ? `, ${count(done)} of ${count(total)}` : ""} …`;
    if (total) { bar.max = total; bar.value = done; } else { bar.removeAttribute("value"); }
  };
  return box;
}

// Asks again and again until `over` says that the answer is the last; the returned function ends it.
export function until(question, over, each, wrong) {
  let closed = false;
  let later = 0;
  const turn = async () => {
    try {
      const answer = await question();
      if (closed) return;
      each(answer);
      if (!over(answer)) later = setTimeout(turn, 500);
    } catch (error) { if (!closed) wrong(error); }
  };
  turn();
  return () => { closed = true; clearTimeout(later); };
}
