// What the map can show: the index, or the images of a run at every epoch that it kept.
import { ask, say } from "./ask.js";
import { count, images } from "./dom.js";
import { Points } from "./points.js";

const sleep = (time) => new Promise((done) => { setTimeout(done, time); });

// A scene has classes [[name, size]], `picture(id)`: an address or null, `read(tell, closed)`: its points, and `recall(name)`.
export class OfIndex {
  constructor(facts) { Object.assign(this, { classes: facts.classes, opens: true, film: null, table: null }); }

  picture(id) { return `/thumbnail/${id}`; }

  async recalls() { this.table ??= (await ask("/api/recall")).recall; }

  recall(kind) { return this.table ? this.table[this.classes[kind][0]] : undefined; }

  async read(map) {
    let made = await ask("/api/map");
    const fetched = async () => Points.read(await ask("/api/map/points", {}, { binary: true }));
    map.take(await fetched(), 1, 1);
    map.note(this.said(made));
    while (!made.final && !map.closed) {
      await sleep(1500);
      if (map.closed) return;
      const now = await ask("/api/map", {}, { quietly: true });
      if (now.final && now.method !== made.method) { map.take(await fetched()); say("A better map is shown."); }
      made = now;
      map.note(this.said(made));
    }
  }

  said(made) {
    return `${images(made.images)} by ${made.method}. ${made.final ? "" : "A better map is being made and will take its place. "}Drag to move, scroll or pinch to zoom, click an image to search for it.`;
  }
}

export class OfRun {
  constructor(run) { Object.assign(this, { run, classes: [], opens: false, film: null, table: null, epochs: [] }); }

  picture(id) { return this.pictures ? `/epoch-image/${id}?run=${encodeURIComponent(this.run)}` : null; }

  async recalls() { this.table ??= (await ask("/api/epochs/recall", { run: this.run })).recall; }

  recall(kind) { return (this.table && this.table[this.film.shown][kind]) ?? undefined; }

  async read(map) {
    let facts = await ask("/api/epochs/facts", { run: this.run });
    while (facts.state === "making") {
      if (map.closed) return;
      const doing = facts.said || "reading the run";
      map.note(`${doing[0].toUpperCase()}${doing.slice(1)}${facts.total ? `, ${count(facts.done)} of ${count(facts.total)}` : ""}`, facts.total ? facts.done / facts.total : 0);
      await sleep(500);
      facts = await ask("/api/epochs/facts", { run: this.run }, { quietly: true });
    }
    if (facts.state === "failed") throw new Error(`The epochs of ${this.run} cannot be shown: ${facts.said}.`);
    Object.assign(this, { classes: facts.classes, epochs: facts.epochs, pictures: facts.pictures, part: facts.part, metric: facts.metric, word: facts.word });
    const content = await ask("/api/epochs/points", { run: this.run }, { binary: true });
    if (map.closed) return;
    const size = facts.images;
    const rows = new Int32Array(content, 0, 2 * size);
    const frames = new Float32Array(content, 8 * size);
    const points = new Points(new Float32Array(size), new Float32Array(size), rows.filter((_, at) => at % 2 === 0), rows.filter((_, at) => at % 2 === 1));
    this.film = new Film(frames, size, facts.epochs.length);
    this.film.place(points);
    map.take(points, ...this.film.reach());
    map.note(this.said(facts));
  }

  said(facts) {
    const which = `${images(facts.images).replace(" ", ` ${facts.part} `)} of ${this.run}`;
    const pictures = facts.pictures ? "" : ` Their pictures cannot be shown: ${facts.said || "the data set is not there"}.`;
    return `${which} at ${facts.epochs.length === 1 ? "the one epoch that was" : `${facts.epochs.length} epochs that were`} kept. Each epoch begins where the next one lies, so what moves has moved. Space plays, comma and full stop step.${facts.classes.length ? " Click an image to bring out its class." : ""}${pictures}`;
  }

  // What is said of an epoch.
  epoch(at) {
    const { epoch, value } = this.epochs[at];
    return [`Epoch ${epoch}`, value === null || value === undefined ? "" : `${this.metric} ${(100 * value).toFixed(1)} %`];
  }
}

// Places at every epoch, and between them.
class Film {
  constructor(frames, size, count) { Object.assign(this, { frames, size, count, at: count - 1, shown: count - 1 }); }

  // How far points lie from the middle, across and down, over all epochs.
  reach() {
    const most = [1e-6, 1e-6];
    for (let at = 0; at < this.frames.length; at += 1) most[at & 1] = Math.max(most[at & 1], Math.abs(this.frames[at]));
    return most;
  }

  place(points) {
    const low = Math.min(this.count - 1, Math.floor(this.at));
    const high = Math.min(this.count - 1, low + 1);
    const share = this.at - low;
    const eased = share * share * (3 - 2 * share);
    const { frames, size } = this;
    for (let at = 0; at < size; at += 1) {
      const one = 2 * (low * size + at);
      const other = 2 * (high * size + at);
      points.x[at] = frames[one] + (frames[other] - frames[one]) * eased;
      points.y[at] = frames[one + 1] + (frames[other + 1] - frames[one + 1]) * eased;
    }
  }
}
