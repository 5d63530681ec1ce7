// Points on a canvas, written as pixels: tens of thousands a frame, on any machine.
const stamps = new Map();

// A disc of a radius on a canvas of a width: where its pixels lie from its middle, and how much of each it covers.
function stamp(radius, width) {
  const key = `${radius} ${width}`;
  if (stamps.has(key)) return stamps.get(key);
  const reach = Math.ceil(radius);
  const offsets = [];
  const cover = [];
  for (let y = -reach; y <= reach; y += 1) {
    for (let x = -reach; x <= reach; x += 1) {
      const share = Math.min(1, radius + 0.5 - Math.hypot(x, y));
      if (share > 0.05) { offsets.push(y * width + x); cover.push(Math.round(share * 255)); }
    }
  }
  if (stamps.size > 60) stamps.clear();
  const found = { offsets: Int32Array.from(offsets), cover: Uint8Array.from(cover), reach };
  stamps.set(key, found);
  return found;
}

function mixed(under, over, share) {
  const rest = 255 - share;
  const mix = (shift) => ((((under >>> shift) & 255) * rest + ((over >>> shift) & 255) * share) / 255) & 255;
  return ((Math.max(under >>> 24, share) << 24) | (mix(16) << 16) | (mix(8) << 8) | mix(0)) >>> 0;
}

export class Points {
  constructor(x, y, id, kind) {
    Object.assign(this, { x, y, id, kind, size: x.length });
    this.colour = new Uint32Array(this.size);
    this.chosen = null;  // Uint8Array: which points are chosen
  }

  // 16 bytes a point: x, y, number, class.
  static read(content) {
    const view = new DataView(content);
    const size = content.byteLength / 16;
    const made = new Points(new Float32Array(size), new Float32Array(size), new Int32Array(size), new Int32Array(size));
    for (let at = 0; at < size; at += 1) {
      made.x[at] = view.getFloat32(16 * at, true);
      made.y[at] = view.getFloat32(16 * at + 4, true);
      made.id[at] = view.getInt32(16 * at + 8, true);
      made.kind[at] = view.getInt32(16 * at + 12, true);
    }
    return made;
  }

  // `lens`: {scale, left, top} from places to pixels of the canvas; `ratio`: pixels of the screen to those of the page.
  draw(canvas, lens, ratio) {
    const context = canvas.getContext("2d");
    const { width, height } = canvas;
    if (!this.paper || this.paper.width !== width || this.paper.height !== height) {
      this.paper = context.createImageData(width, height);
      this.pixels = new Uint32Array(this.paper.data.buffer);
    }
    const { pixels, x: across, y: down, colour: colours, chosen } = this;
    pixels.fill(0);
    const wide = this.size > 20000 ? 1 : this.size > 3000 ? 1.9 : 3;
    const radius = Math.round(2 * Math.max(1, Math.min(8, ratio * Math.sqrt(lens.scale / (300 * ratio)) * wide))) / 2;
    const { offsets, cover, reach } = stamp(radius, width);
    const { scale, left, top } = lens;
    for (const pass of chosen ? [0, 1] : [2]) {
      for (let at = 0; at < this.size; at += 1) {
        if (pass < 2 && chosen[at] !== pass) continue;
        const x = Math.round(across[at] * scale + left);
        const y = Math.round(down[at] * scale + top);
        if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
        const base = y * width + x;
        if (pass === 0) {
          const faint = ((colours[at] & 0x00ffffff) | 0x30000000) >>> 0;
          for (let spot = 0; spot < offsets.length; spot += 1) if (cover[spot] > 127) pixels[base + offsets[spot]] = faint;
          continue;
        }
        const colour = colours[at];
        for (let spot = 0; spot < offsets.length; spot += 1) {
          const share = cover[spot];
          const place = base + offsets[spot];
          if (share === 255) pixels[place] = colour;
          else if (pixels[place] >>> 24) pixels[place] = mixed(pixels[place], colour, share);
          else pixels[place] = ((colour & 0x00ffffff) | (share << 24)) >>> 0;
        }
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

  // The points in view; null as soon as there are more than `most`.
  within(lens, width, height, most = Infinity) {
    const found = [];
    for (let at = 0; at < this.size; at += 1) {
      const x = this.x[at] * lens.scale + lens.left;
      const y = this.y[at] * lens.scale + lens.top;
      if (x >= 0 && y >= 0 && x < width && y < height) {
        if (found.length >= most) return null;
        found.push(at);
      }
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
