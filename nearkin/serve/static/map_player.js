// The slider over epochs: play, pause, step, with the epoch and its measure in words.
import { make } from "./dom.js";

const PACE = 1.4;  // epochs a second while it plays
const TRAVEL = 450;  // milliseconds to where the slider was put
const MOST = 50;  // milliseconds that count of a frame: after a pause of the page nothing leaps

export class Player {
  // `scene` has a film and epochs; `moved(settled)` is called when places have changed, `turned()` when another epoch is shown.
  constructor(scene, moved, turned) {
    Object.assign(this, { scene, film: scene.film, moved, turned, playing: false, rewinds: false, goal: scene.film.at, frame: 0 });
    const last = this.film.count - 1;
    this.play = make("button", { type: "button", class: "play", onclick: () => this.toggle() });
    this.range = make("input", { type: "range", min: 0, max: last, step: 1, value: last, "aria-label": "Epoch" });
    this.words = make("output", { class: "words" });
    this.root = make("div", { class: "player", role: "group", "aria-label": "Epochs of the run" }, this.play, curve(scene, this.range), this.words);
    this.range.addEventListener("input", () => { this.pause(); this.to(Number(this.range.value)); });
    this.play.disabled = this.range.disabled = last === 0;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.tell();
  }

  close() { cancelAnimationFrame(this.frame); this.playing = false; this.closed = true; }

  toggle() {
    if (this.film.count < 2) return;
    if (this.playing) { this.pause(); return; }
    this.playing = true;
    this.rewinds = Math.round(this.film.at) >= this.film.count - 1;  // from the end it goes back first, and quickly
    this.goal = this.rewinds ? 0 : this.film.count - 1;
    this.speed = this.film.count / TRAVEL;
    this.since = performance.now();
    this.tell();
    this.run();
  }

  pause() {
    if (!this.playing) return;
    this.playing = this.rewinds = false;
    this.to(Math.round(this.film.at));
    this.tell();
  }

  step(by) { this.pause(); this.to(Math.max(0, Math.min(this.film.count - 1, Math.round(this.goal) + by))); }

  to(goal) {
    this.goal = goal;
    this.speed = Math.abs(goal - this.film.at) / TRAVEL;
    this.range.value = goal;
    if (this.still.matches) { this.film.at = goal; this.set(); this.moved(true); } else this.run();
  }

  run() {
    if (this.frame) return;
    let before = performance.now();
    const next = (now) => {
      this.frame = 0;
      if (this.closed) return;
      const passed = Math.max(0, Math.min(MOST, now - before));
      before = now;
      const { film } = this;
      if (this.playing && this.still.matches) {
        if (this.rewinds) film.at = 0;
        else if (now - this.since > 1000 / PACE) { this.since = now; film.at = Math.min(film.count - 1, Math.floor(film.at) + 1); }
      } else {
        const way = passed * (this.playing && !this.rewinds ? PACE / 1000 : this.speed);
        film.at = film.at < this.goal ? Math.min(this.goal, film.at + way) : Math.max(this.goal, film.at - way);
      }
      if (this.rewinds && film.at === 0) { this.rewinds = false; this.goal = film.count - 1; }
      const settled = film.at === this.goal;
      if (settled) this.playing = false;
      this.set();
      this.moved(settled);
      if (!settled) this.frame = requestAnimationFrame(next);
    };
    this.frame = requestAnimationFrame(next);
  }

  // What is shown now, in words; the map is told when it is another epoch.
  set() {
    const shown = Math.round(this.film.at);
    const turned = shown !== this.film.shown;
    this.film.shown = shown;
    this.tell();
    if (turned) this.turned();
  }

  tell() {
    const [epoch, measure] = this.scene.epoch(this.film.shown);
    this.play.textContent = this.playing ? "❚❚" : "▶";
    this.play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.play.title = this.playing ? "Pause" : "Play";
    if (this.playing || this.film.at === this.goal) this.range.value = this.film.shown;
    this.range.setAttribute("aria-valuetext", `${epoch}, ${measure}`);
    if (this.words.dataset.said === epoch) return;
    this.words.dataset.said = epoch;
    this.words.replaceChildren(make("b", {}, epoch), make("span", { class: "soft" }, measure));
  }
}

// The measure of every epoch as a line above the slider.
function curve({ epochs }, range) {
  const named = "http://www.w3.org/2000/svg";
  const values = epochs.map(({ value }) => value);
  const track = make("div", { class: "track" });
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length === values.length && values.length > 1) {
    const low = Math.min(...known);
    const room = Math.max(Math.max(...known) - low, 1e-6);
    const svg = document.createElementNS(named, "svg");
    svg.setAttribute("viewBox", "0 0 100 20");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(named, "path");
    path.setAttribute("d", values.map((value, at) => `${at ? "L" : "M"}${((100 * at) / (values.length - 1)).toFixed(2)} ${(18 - (16 * (value - low)) / room).toFixed(2)}`).join(""));
    svg.append(path);
    track.append(svg);
  }
  track.append(range);
  return track;
}
