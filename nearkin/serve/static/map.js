// The map: every image as a point, near what it looks like.
import { ask, complain, say } from "./ask.js";
import { go, link, state } from "./address.js";
import { count, images, make } from "./dom.js";
import { grid } from "./tiles.js";
import { ofClass, ofRecall } from "./hues.js";
import { OfIndex, OfRun } from "./map_scenes.js";
import { Player } from "./map_player.js";

const CLOSE = 34;  // pixels of the page between neighbours from which on thumbnails fit
const MOST_PICTURES = 160;
const EDGE = 3;  // pixels of the page that a picture is framed by
const MOST_LISTED = 120;

let latest = 0;

export async function show(place, facts) {
  const { run = "" } = state();
  const turn = ++latest;
  const runs = facts.runs ? await kept() : [];
  if (turn !== latest || state().tab !== "map") return null;  // something else is shown by now
  if (!facts.images && !runs.length) {
    place.replaceChildren(make("div", { class: "card empty" }, make("h1", {}, "There is nothing to draw yet"), make("p", {}, "Add images with nearkin index add.")));
    return null;
  }
  const wanted = run || (facts.images ? "" : runs[0]);
  const parts = built(wanted, runs, facts);
  place.replaceChildren(parts.root);
  const map = new Map_(parts, wanted ? new OfRun(wanted) : new OfIndex(facts));
  map.load();
  return () => map.close();
}

// The runs that kept their embeddings.
async function kept() {
  try {
    return (await ask("/api/epochs", {}, { quietly: true })).runs;
  } catch (error) {
    complain(error);
    return [];
  }
}

function built(run, runs, facts) {
  const canvas = make("canvas", {
    tabindex: "0", role: "application",
    "aria-label": `Map of ${run ? `the images of ${run}` : images(facts.images)}. Arrow keys move, plus and minus zoom, zero shows all, L lists the images in view.`,
  });
  const over = make("canvas", { class: "over", "aria-hidden": "true" });
  const tip = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const of = make("select", { "aria-label": "What the map shows" }, facts.images ? make("option", { value: "" }, "the index") : null, runs.map((name) => make("option", { value: name, selected: name === run }, `${name} by epoch`)));
  of.addEventListener("change", () => go(link({ tab: "map", run: of.value })));
  const colour = make("select", { "aria-label": "What colours mean" }, make("option", { value: "class" }, "Class"), make("option", { value: "recall" }, "Recall of the class"));
  const find = make("select", { "aria-label": "Class to bring out" }, make("option", { value: "" }, "all"));
  const lasso = make("button", { type: "button", "aria-pressed": "false", title: "Draw around images to list them; or hold shift while dragging" }, "Lasso");
  const list = make("button", { type: "button" }, "List view");
  const nearer = make("button", { type: "button", "aria-label": "Zoom in" }, "+");
  const further = make("button", { type: "button", "aria-label": "Zoom out" }, "−");
  const all = make("button", { type: "button" }, "Show all");
  const note = make("p", { class: "soft small note" });
  const bar = make("progress", { max: "1", hidden: true, "aria-label": "How far the map is" });
  const key = make("p", { class: "key small", hidden: true }, "recall@1 of the class: 0", make("i"), "1");
  const listed = make("section", { class: "listed", "aria-label": "Images chosen on the map" });
  const stage = make("div", { class: "stage" }, canvas, over, tip, make("div", { class: "zoom" }, nearer, further));
  const named = [make("label", { class: "field", hidden: true }, "Colour", colour), make("label", { class: "field", hidden: true }, "Class", find)];
  const player = make("div");
  const root = make("div", { class: run ? "mapped filmed" : "mapped" },
    make("h1", { class: "unseen" }, run ? `Map of the images of ${run} by epoch` : "Map of the index"),
    make("div", { class: "tools" }, runs.length ? make("label", { class: "field" }, "Show", of) : null, named, lasso, list, all, key),
    make("div", { class: "frame" }, stage, bar, player), note, listed);
  return { root, canvas, over, tip, colour, find, lasso, list, nearer, further, all, note, key, listed, stage, bar, player, named };
}

class Map_ {
  constructor(parts, scene) {
    Object.assign(this, { parts, scene, points: null, lens: null, closed: false, loop: null, pictures: new Map(), player: null, reach: [1, 1] });
    this.stop = new AbortController();
    this.listen();
  }

  close() {
    this.closed = true;
    this.stop.abort();
    this.watch.disconnect();
    if (this.player) this.player.close();
  }

  async load() {
    try {
      await this.scene.read(this);
      if (this.scene.film && !this.closed) this.film();
    } catch (error) {
      if (this.closed) return;
      this.note(error.message);
      complain(error);
    }
  }

  // What is said below the map; `share`: how much of it is done, where it is being made.
  note(sentence, share) {
    this.parts.bar.hidden = share === undefined;
    if (share) this.parts.bar.value = share;
    else this.parts.bar.removeAttribute("value");
    this.parts.note.textContent = sentence;
  }

  // Show these points; `across` and `down`: how far they lie from the middle.
  take(fresh, across = 0, down = 0) {
    if (this.closed) return;
    const { find, named } = this.parts;
    const { classes } = this.scene;
    this.points = fresh;
    this.reach = this.scene.film ? [across, down] : [fresh.x, fresh.y].map((values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6));
    if (find.options.length === 1) find.append(...classes.map(([name, size], at) => make("option", { value: at }, `${name} (${count(size)})`)));
    for (const one of named) one.hidden = !classes.length;
    this.paint();
    this.resize();
    this.whole();
  }

  film() {
    const { scene, points, parts } = this;
    const wanted = scene.epochs.findIndex(({ epoch }) => String(epoch) === state().epoch);
    if (wanted >= 0) scene.film.at = scene.film.shown = wanted;
    const settle = (settled) => {
      scene.film.place(points);
      this.draw();
      if (settled) history.replaceState(null, "", link({ tab: "map", run: scene.run, epoch: scene.film.shown === scene.film.count - 1 ? "" : scene.epochs[scene.film.shown].epoch }));
    };
    this.player = new Player(scene, settle, () => { if (parts.colour.value === "recall") this.paint(); });
    parts.player.replaceChildren(this.player.root);
    scene.film.place(points);
    this.draw();
  }

  paint() {
    const { points, scene } = this;
    if (!points) return;
    const byRecall = this.parts.colour.value === "recall" && scene.table;
    this.parts.key.hidden = !byRecall;
    const colours = scene.classes.map((_, at) => (byRecall ? ofRecall(scene.recall(at)) : ofClass(at)));
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
    const half = this.side(this.points.size) / 2 + EDGE * this.ratio;
    const [across, down] = [width, height].map((length, at) => Math.max(length * 0.1, Math.min(length * 0.46, length * 0.49 - half)) / this.reach[at]);
    this.lens = { scale: Math.min(across, down), left: width / 2, top: height / 2 };
    this.draw();
  }

  // Pixels of the longer side of a picture where so many images are in view; 0 where there is no room for pictures.
  side(seen) {
    const { width, height } = this.parts.over;
    const room = Math.sqrt((width * height) / Math.max(1, seen)) / this.ratio;
    return seen <= MOST_PICTURES && room > CLOSE ? Math.min(96, room * 0.6) * this.ratio : 0;
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
    const seen = this.points.within(this.lens, over.width, over.height, MOST_PICTURES);
    const side = seen ? this.side(seen.length) : 0;
    if (side) for (const at of seen) this.picture(context, at, side);
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
    const source = this.scene.picture(id);
    let image = this.pictures.get(id);
    if (!source) return;
    if (!image) {
      image = new Image();
      image.onload = () => this.draw();
      image.src = source;
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
    const edge = EDGE * this.ratio;
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
      const name = kind >= 0 ? this.scene.classes[kind][0] : "no class";
      const recall = kind >= 0 && this.parts.colour.value === "recall" ? this.scene.recall(kind) : undefined;
      const source = this.scene.picture(id);
      const sharp = (event) => event.target.classList.toggle("pixels", Math.max(event.target.naturalWidth, event.target.naturalHeight) < 80);
      tip.replaceChildren(...[source ? make("img", { src: source, alt: "", onload: sharp }) : "", make("b", {}, name), recall === undefined ? "" : make("span", { class: "soft" }, `recall@1${this.scene.word || ""} ${recall.toFixed(2)}`)]);
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
    if (!points) return;
    points.chosen = null;
    if (found) {
      points.chosen = new Uint8Array(points.size);
      for (const at of found) points.chosen[at] = 1;
    }
    this.draw();
    if (!found) { this.parts.listed.replaceChildren(); return; }
    const { scene } = this;
    const shown = found.slice(0, MOST_LISTED).map((at) => ({
      id: points.id[at], label: points.kind[at] >= 0 ? scene.classes[points.kind[at]][0] : "", name: `image ${points.id[at]}`,
      source: scene.opens ? undefined : scene.picture(points.id[at]) || "/static/mark.svg",
    }));
    const title = `${images(found.length)} ${what}`;
    this.parts.listed.replaceChildren(
      make("div", { class: "head" }, make("h2", {}, title, found.length > MOST_LISTED ? make("span", { class: "soft small" }, ` the first ${MOST_LISTED} are listed`) : null),
        make("button", { type: "button", onclick: () => { this.parts.find.value = ""; this.choose(null); this.parts.canvas.focus(); } }, "Clear")),
      grid(shown));
    say(title);
  }

  // Bring out a class by its place; -1: none.
  bring(kind) {
    if (!this.points) return;
    this.parts.find.value = kind < 0 ? "" : String(kind);
    if (kind < 0) { this.choose(null); return; }
    const found = [];
    for (let at = 0; at < this.points.size; at += 1) if (this.points.kind[at] === kind) found.push(at);
    this.choose(found, `of class ${this.scene.classes[kind][0]}`);
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
        if (found >= 0 && this.scene.opens) go(link({ id: this.points.id[found] }));
        else if (found >= 0) this.bring(this.points.kind[found]);
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
        ...(this.player ? { " ": () => this.player.toggle(), ",": () => this.player.step(-1), ".": () => this.player.step(1) } : {}),
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
    find.addEventListener("change", () => this.bring(find.value === "" ? -1 : Number(find.value)), options);
    colour.addEventListener("change", async () => {
      try {
        if (colour.value === "recall" && !this.scene.table) {
          say("Images ask for their neighbours.");
          await this.scene.recalls();
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
