// The map: every image as a point, near what it looks like.
import { ask, complain, say } from "./ask.js";
import { go, link } from "./address.js";
import { count, images, make } from "./dom.js";
import { grid } from "./tiles.js";
import { ofClass, ofRecall } from "./hues.js";
import { Points } from "./points.js";

const CLOSE = 34;  // pixels of the page between neighbours from which on thumbnails fit
const MOST_PICTURES = 160;
const MOST_LISTED = 120;
const sleep = (time) => new Promise((done) => { setTimeout(done, time); });

export async function show(place, facts) {
  if (!facts.images) {
    place.replaceChildren(make("div", { class: "card empty" }, make("h1", {}, "There is nothing to draw yet"), make("p", {}, "Add images with nearkin index add.")));
    return null;
  }
  const parts = built(facts);
  place.replaceChildren(parts.root);
  const map = new Map_(parts, facts);
  try {
    await map.load();
  } catch (error) {
    complain(error);
  }
  return () => map.close();
}

function built(facts) {
  const canvas = make("canvas", {
    tabindex: "0", role: "application",
    "aria-label": `Map of ${images(facts.images)}. Arrow keys move, plus and minus zoom, zero shows all, L lists the images in view.`,
  });
  const over = make("canvas", { class: "over", "aria-hidden": "true" });
  const tip = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const colour = make("select", { "aria-label": "What colours mean" }, make("option", { value: "class" }, "Class"), make("option", { value: "recall" }, "Recall of the class"));
  const find = make("select", { "aria-label": "Class to bring out" }, make("option", { value: "" }, "all"), facts.classes.map(([name, size], at) => make("option", { value: at }, `${name} (${count(size)})`)));
  const lasso = make("button", { type: "button", "aria-pressed": "false", title: "Draw around images to list them; or hold shift while dragging" }, "Lasso");
  const list = make("button", { type: "button" }, "List view");
  const nearer = make("button", { type: "button", "aria-label": "Zoom in" }, "+");
  const further = make("button", { type: "button", "aria-label": "Zoom out" }, "−");
  const all = make("button", { type: "button" }, "Show all");
  const note = make("p", { class: "soft small note" });
  const key = make("p", { class: "key small", hidden: true }, "recall@1 of the class: 0", make("i"), "1");
  const listed = make("section", { class: "listed", "aria-label": "Images chosen on the map" });
  const stage = make("div", { class: "stage" }, canvas, over, tip, make("div", { class: "zoom" }, nearer, further));
  const classes = facts.classes.length;
  const root = make("div", { class: "mapped" },
    make("h1", { class: "unseen" }, "Map of the index"),
    make("div", { class: "tools" },
      classes ? make("label", { class: "field" }, "Colour", colour) : null,
      classes ? make("label", { class: "field" }, "Class", find) : null,
      lasso, list, all, key),
    stage, note, listed);
  return { root, canvas, over, tip, colour, find, lasso, list, nearer, further, all, note, key, listed, stage };
}

class Map_ {
  constructor(parts, facts) {
    Object.assign(this, { parts, facts, points: null, lens: null, closed: false, loop: null, pictures: new Map(), recall: null });
    this.stop = new AbortController();
    this.listen();
  }

  close() { this.closed = true; this.stop.abort(); this.watch.disconnect(); }

  async load() {
    let made = await ask("/api/map");
    await this.read();
    this.describe(made);
    while (!made.final && !this.closed) {
      await sleep(1500);
      if (this.closed) return;
      const now = await ask("/api/map", {}, { quietly: true });
      if (now.final && now.method !== made.method) { await this.read(); say("A better map is shown."); }
      made = now;
      this.describe(made);
    }
  }

  describe(made) {
    this.parts.note.textContent = `${images(made.images)} by ${made.method}. ${made.final ? "" : "A better map is being made and will take its place. "}Drag to move, scroll or pinch to zoom, click an image to search for it.`;
  }

  async read() {
    const fresh = new Points(await ask("/api/map/points", {}, { binary: true }));
    if (this.closed) return;
    this.points = fresh;
    this.paint();
    this.resize();
    this.whole();
  }

  paint() {
    const { points, facts } = this;
    if (!points) return;
    const byRecall = this.parts.colour.value === "recall" && this.recall;
    this.parts.key.hidden = !byRecall;
    const colours = facts.classes.map(([name], at) => (byRecall ? ofRecall(this.recall[name]) : ofClass(at)));
    const none = ofClass(-1);
    for (let at = 0; at < points.size; at += 1) points.colour[at] = points.kind[at] < 0 ? none : colours[points.kind[at]];
    this.draw();
  }

  resize() {
    const { canvas, over, stage } = this.parts;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    const box = stage.getBoundingClientRect();
    for (const one of [canvas, over]) { one.width = Math.max(1, Math.round(box.width * this.ratio)); one.height = Math.max(1, Math.round(box.height * this.ratio)); }
    this.draw();
  }

  whole() {
    if (!this.points) return;
    const { width, height } = this.parts.canvas;
    const [across, down] = [this.points.x, this.points.y].map((values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6));
    this.lens = { scale: Math.min(width / across, height / down) * 0.46, left: width / 2, top: height / 2 };
    this.draw();
  }

  zoom(factor, x = this.parts.canvas.width / 2, y = this.parts.canvas.height / 2) {
    const { lens } = this;
    if (!lens) return;
    const least = Math.min(this.parts.canvas.width, this.parts.canvas.height) * 0.2;
    const scale = Math.max(least, Math.min(least * 4000, lens.scale * factor));
    const real = scale / lens.scale;
    this.lens = { scale, left: x - (x - lens.left) * real, top: y - (y - lens.top) * real };
    this.draw();
  }

  move(x, y) { if (this.lens) { this.lens = { ...this.lens, left: this.lens.left + x, top: this.lens.top + y }; this.draw(); } }

  draw() {
    if (this.frame || !this.points || !this.lens) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.closed) return;
      this.points.draw(this.parts.canvas, this.lens, this.ratio);
      this.details();
    });
  }

  // Thumbnails where few images are in view, and the line of the lasso.
  details() {
    const { over } = this.parts;
    const context = over.getContext("2d");
    context.clearRect(0, 0, over.width, over.height);
    const seen = this.points.within(this.lens, over.width, over.height);
    const room = Math.sqrt((over.width * over.height) / Math.max(1, seen.length)) / this.ratio;
    if (seen.length <= MOST_PICTURES && room > CLOSE) {
      const side = Math.min(96, room * 0.6) * this.ratio;
      for (const at of seen) this.picture(context, at, side);
    }
    if (this.loop) {
      context.beginPath();
      this.loop.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath();
      const ink = getComputedStyle(document.documentElement).getPropertyValue("--accent");
      context.strokeStyle = ink;
      context.lineWidth = 2 * this.ratio;
      context.stroke();
      context.globalAlpha = 0.12;
      context.fillStyle = ink;
      context.fill();
      context.globalAlpha = 1;
    }
  }

  picture(context, at, side) {
    const id = this.points.id[at];
    let image = this.pictures.get(id);
    if (!image) {
      image = new Image();
      image.onload = () => this.draw();
      image.src = `/thumbnail/${id}`;
      this.pictures.set(id, image);
      if (this.pictures.size > 4 * MOST_PICTURES) this.pictures.delete(this.pictures.keys().next().value);
    }
    if (!image.complete || !image.naturalWidth) return;
    const factor = side / Math.max(image.naturalWidth, image.naturalHeight);
    const [width, height] = [image.naturalWidth * factor, image.naturalHeight * factor];
    const x = this.points.x[at] * this.lens.scale + this.lens.left - width / 2;
    const y = this.points.y[at] * this.lens.scale + this.lens.top - height / 2;
    const colour = this.points.colour[at];
    context.globalAlpha = this.points.chosen && !this.points.chosen[at] ? 0.25 : 1;
    context.fillStyle = `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
    const edge = 3 * this.ratio;
    context.fillRect(x - edge, y - edge, width + 2 * edge, height + 2 * edge);
    context.imageSmoothingEnabled = factor < 2;
    context.drawImage(image, x, y, width, height);
    context.globalAlpha = 1;
  }

  hover(event) {
    const { tip, stage, canvas } = this.parts;
    const [x, y] = this.at(event);
    const found = this.points ? this.points.nearest(x, y, this.lens, 14 * this.ratio) : -1;
    canvas.classList.toggle("on", found >= 0);
    tip.hidden = found < 0;
    if (found < 0) return -1;
    const id = this.points.id[found];
    if (tip.dataset.id !== String(id)) {
      const kind = this.points.kind[found];
      const name = kind >= 0 ? this.facts.classes[kind][0] : "no class";
      const recall = kind >= 0 && this.recall && this.parts.colour.value === "recall" ? this.recall[name] : undefined;
      tip.replaceChildren(make("img", { src: `/thumbnail/${id}`, alt: "" }), make("b", {}, name), recall === undefined ? null : make("span", { class: "soft" }, `recall@1 ${recall.toFixed(2)}`));
      tip.dataset.id = id;
    }
    const box = stage.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    tip.style.left = `${left > box.width - 170 ? left - 160 : left + 16}px`;
    tip.style.top = `${Math.max(4, Math.min(top - 60, box.height - 190))}px`;
    return found;
  }

  at(event) {
    const box = this.parts.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * this.ratio, (event.clientY - box.top) * this.ratio];
  }

  choose(found, what) {
    const { points } = this;
    points.chosen = null;
    if (found) {
      points.chosen = new Uint8Array(points.size);
      for (const at of found) points.chosen[at] = 1;
    }
    this.draw();
    if (!found) { this.parts.listed.replaceChildren(); return; }
    const shown = found.slice(0, MOST_LISTED).map((at) => ({ id: points.id[at], label: points.kind[at] >= 0 ? this.facts.classes[points.kind[at]][0] : "", name: `image ${points.id[at]}` }));
    const title = `${images(found.length)} ${what}`;
    this.parts.listed.replaceChildren(
      make("div", { class: "head" }, make("h2", {}, title, found.length > MOST_LISTED ? make("span", { class: "soft small" }, ` the first ${MOST_LISTED} are listed`) : null),
        make("button", { type: "button", onclick: () => { this.parts.find.value = ""; this.choose(null); this.parts.canvas.focus(); } }, "Clear")),
      grid(shown));
    say(title);
  }

  view() { if (this.points) this.choose(this.points.within(this.lens, this.parts.canvas.width, this.parts.canvas.height), "in view"); }

  listen() {
    const { canvas, lasso, list, nearer, further, all, colour, find, tip, stage } = this.parts;
    const options = { signal: this.stop.signal };
    const held = new Map();
    let moved = 0;
    let pinch = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, this.at(event));
      moved = 0;
      if (held.size === 1 && (event.shiftKey || lasso.getAttribute("aria-pressed") === "true")) this.loop = [this.at(event)];
      if (held.size === 2) { this.loop = null; pinch = 0; }
    }, options);
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) { this.hover(event); return; }
      tip.hidden = true;
      const now = this.at(event);
      moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      held.set(event.pointerId, now);
      if (held.size === 2) {
        const [one, other] = [...held.values()];
        const apart = Math.hypot(one[0] - other[0], one[1] - other[1]);
        if (pinch) this.zoom(apart / pinch, (one[0] + other[0]) / 2, (one[1] + other[1]) / 2);
        pinch = apart;
      } else if (this.loop) { this.loop.push(now); this.draw(); } else this.move(now[0] - before[0], now[1] - before[1]);
    }, options);
    const up = (event) => {
      if (!held.delete(event.pointerId)) return;
      if (this.loop) {
        const loop = this.loop;
        this.loop = null;
        if (loop.length > 3) this.choose(this.points.inside(loop, this.lens), "inside the lasso");
        else this.draw();
      } else if (event.type === "pointerup" && moved < 6 * this.ratio) {
        const found = this.hover(event);
        if (found >= 0) go(link({ id: this.points.id[found] }));
      }
    };
    canvas.addEventListener("pointerup", up, options);
    canvas.addEventListener("pointercancel", up, options);
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; }, options);
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); tip.hidden = true; this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...this.at(event)); }, { ...options, passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 60 * this.ratio;
      const act = {
        ArrowLeft: () => this.move(step, 0), ArrowRight: () => this.move(-step, 0), ArrowUp: () => this.move(0, step), ArrowDown: () => this.move(0, -step),
        "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.whole(), l: () => this.view(), L: () => this.view(),
        Escape: () => this.choose(null),
      }[event.key];
      if (act && !event.ctrlKey && !event.metaKey) { event.preventDefault(); act(); }
    }, options);
    lasso.addEventListener("click", () => {
      const on = lasso.getAttribute("aria-pressed") !== "true";
      lasso.setAttribute("aria-pressed", String(on));
      stage.classList.toggle("drawing", on);
    }, options);
    list.addEventListener("click", () => this.view(), options);
    nearer.addEventListener("click", () => this.zoom(1.6), options);
    further.addEventListener("click", () => this.zoom(1 / 1.6), options);
    all.addEventListener("click", () => this.whole(), options);
    find.addEventListener("change", () => {
      const wanted = Number(find.value);
      if (find.value === "") this.choose(null);
      else this.choose([...this.points.kind.keys()].filter((at) => this.points.kind[at] === wanted), `of class ${this.facts.classes[wanted][0]}`);
    }, options);
    colour.addEventListener("change", async () => {
      try {
        if (colour.value === "recall" && !this.recall) {
          say("Images ask for their neighbours.");
          this.recall = (await ask("/api/recall")).recall;
        }
        this.paint();
      } catch (error) { complain(error); }
    }, options);
    addEventListener("themechange", () => this.paint(), options);
    this.watch = new ResizeObserver(() => {
      const before = canvas.width;
      this.resize();
      if (canvas.width !== before) this.whole();
    });
    this.watch.observe(stage);
  }
}
