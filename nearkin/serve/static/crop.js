// A part of a picture as a query. The frame moves with the pointer or the arrow keys; with shift it changes its size.
import { make } from "./dom.js";
import { complain } from "./ask.js";
import { send } from "./send.js";

const MOST = 1024;
const STEP = 0.02;

export function crop(source) {
  const frame = { x: 0.2, y: 0.2, w: 0.6, h: 0.6 };
  const picture = make("img", { src: source, alt: "The picture to cut from", draggable: "false" });
  const shown = make("div", { class: "frame", tabindex: "0", role: "group", "aria-label": "Part to search for; arrow keys move it, shift and arrow keys change its size" });
  const stage = make("div", { class: "stage" }, picture, shown);
  const dialog = make("dialog", { "aria-labelledby": "crop-title" },
    make("h2", { id: "crop-title" }, "Search for a part"),
    make("p", { class: "soft small" }, "Draw a frame around it, or move the frame with the arrow keys and size it with shift and arrow keys."),
    stage,
    make("div", { class: "actions" },
      make("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      make("button", { type: "button", class: "first", onclick: finish }, "Search for this part")));
  const fit = (value, high) => Math.max(0, Math.min(high, value));

  function show() {
    frame.w = fit(frame.w, 1);
    frame.h = fit(frame.h, 1);
    frame.x = fit(frame.x, 1 - frame.w);
    frame.y = fit(frame.y, 1 - frame.h);
    for (const [side, value] of [["left", frame.x], ["top", frame.y], ["width", frame.w], ["height", frame.h]]) shown.style[side] = `${value * 100}%`;
  }

  let from = null;
  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return { x: fit((event.clientX - box.left) / box.width, 1), y: fit((event.clientY - box.top) / box.height, 1) };
  };
  stage.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    from = { ...at(event), frame: event.target === shown ? { ...frame } : null };
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!from) return;
    const now = at(event);
    if (from.frame) Object.assign(frame, { x: from.frame.x + now.x - from.x, y: from.frame.y + now.y - from.y });
    else Object.assign(frame, { x: Math.min(from.x, now.x), y: Math.min(from.y, now.y), w: Math.max(0.03, Math.abs(now.x - from.x)), h: Math.max(0.03, Math.abs(now.y - from.y)) });
    show();
  });
  stage.addEventListener("pointerup", () => { from = null; });
  shown.addEventListener("keydown", (event) => {
    const [x, y] = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key] || [0, 0];
    if (event.key === "Enter") finish();
    if (!x && !y) return;
    event.preventDefault();
    if (event.shiftKey) Object.assign(frame, { w: Math.max(0.05, frame.w + x), h: Math.max(0.05, frame.h + y) });
    else Object.assign(frame, { x: frame.x + x, y: frame.y + y });
    show();
  });

  async function finish() {
    try {
      await picture.decode();  // before it is there it has no size, and a part of nothing was sent
      const [left, top] = [frame.x * picture.naturalWidth, frame.y * picture.naturalHeight];
      const [width, height] = [Math.max(1, frame.w * picture.naturalWidth), Math.max(1, frame.h * picture.naturalHeight)];
      const factor = Math.min(1, MOST / Math.max(width, height));
      const canvas = make("canvas", { width: Math.max(1, Math.round(width * factor)), height: Math.max(1, Math.round(height * factor)) });
      canvas.getContext("2d").drawImage(picture, left, top, width, height, 0, 0, canvas.width, canvas.height);
      const blob = await new Promise((done) => { canvas.toBlob(done, "image/png"); });
      dialog.close();
      await send(blob);
    } catch (error) {
      dialog.close();
      complain(error);
    }
  }

  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  show();
  dialog.showModal();
  shown.focus();
}
