// Points on a canvas, written as pixels: tens of thousands a frame, on any machine.
const DISCS = [1, 2, 3, 4, 5, 6, 8].map((radius) => {
  const offsets = [];
  for (let y = -radius; y <= radius; y += 1) for (let x = -radius; x <= radius; x += 1) if (x * x + y * y <= (radius + 0.3) * (radius + 0.3)) offsets.push([x, y]);
  return offsets;
});

export class Points {
  constructor(content) {
    const view = new DataView(content);
    this.size = content.byteLength / 16;
    this.x = new Float32Array(this.size);
    this.y = new Float32Array(this.size);
    this.id = new Int32Array(this.size);
    this.kind = new Int32Array(this.size);
    for (let at = 0; at < this.size; at += 1) {
      this.x[at] = view.getFloat32(16 * at, true);
      this.y[at] = view.getFloat32(16 * at + 4, true);
      this.id[at] = view.getInt32(16 * at + 8, true);
      this.kind[at] = view.getInt32(16 * at + 12, true);
    }
    this.colour = new Uint32Array(this.size);
    this.chosen = null;  // Uint8Array: which points are chosen
  }

  // `lens`: {scale, left, top} from places to pixels of the canvas; `ratio`: pixels of the screen to those of the page.
  draw(canvas, lens, ratio) {
    const context = canvas.getContext("2d");
    const { width, height } = canvas;
    if (!this.paper || this.paper.width !== width || this.paper.height !== height) this.paper = context.createImageData(width, height);
    const pixels = new Uint32Array(this.paper.data.buffer);
    pixels.fill(0);
    const wanted = Math.max(1, Math.min(8, ratio * Math.sqrt(lens.scale / 300) * (this.size > 20000 ? 1 : this.size > 3000 ? 1.8 : 3)));
    const disc = DISCS[Math.max(0, [1, 2, 3, 4, 5, 6, 8].findIndex((radius) => radius >= Math.floor(wanted)))];
    for (const pass of this.chosen ? [0, 1] : [2]) {
      for (let at = 0; at < this.size; at += 1) {
        if (pass < 2 && this.chosen[at] !== pass) continue;
        const x = Math.round(this.x[at] * lens.scale + lens.left);
        const y = Math.round(this.y[at] * lens.scale + lens.top);
        if (x < 8 || y < 8 || x >= width - 8 || y >= height - 8) continue;
        const colour = pass === 0 ? (this.colour[at] & 0x00ffffff) | 0x30000000 : this.colour[at];
        const base = y * width + x;
        for (let spot = 0; spot < disc.length; spot += 1) pixels[base + disc[spot][1] * width + disc[spot][0]] = colour;
      }
    }
    context.putImageData(this.paper, 0, 0);
  }

  nearest(x, y, lens, most) {
    let best = -1;
    let least = most * most;
    for (let at = 0; at < this.size; at += 1) {
      const across = this.x[at] * lens.scale + lens.left - x;
      const down = this.y[at] * lens.scale + lens.top - y;
      const distance = across * across + down * down;
      if (distance < least) { least = distance; best = at; }
    }
    return best;
  }

  within(lens, width, height) {
    const found = [];
    for (let at = 0; at < this.size; at += 1) {
      const x = this.x[at] * lens.scale + lens.left;
      const y = this.y[at] * lens.scale + lens.top;
      if (x >= 0 && y >= 0 && x < width && y < height) found.push(at);
    }
    return found;
  }

  inside(loop, lens) {
    const found = [];
    for (let at = 0; at < this.size; at += 1) {
      const x = this.x[at] * lens.scale + lens.left;
      const y = this.y[at] * lens.scale + lens.top;
      let within = false;
      for (let one = 0, other = loop.length - 1; one < loop.length; other = one, one += 1) {
        const [ax, ay] = loop[one];
        const [bx, by] = loop[other];
        if ((ay > y) !== (by > y) && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
      }
      if (within) found.push(at);
    }
    return found;
  }
}
