// A grid of images, each a link to what looks like it. Arrow keys walk through it.
import { make } from "./dom.js";
import { link } from "./address.js";

function tile(image, keep = {}, place = 0) {
  // `source`: a picture that is not of the index; empty where there is none, and the name stands in its place
  const { id, label, name = "", similarity, right, source } = image;
  const foreign = source !== undefined;
  const verdict = right === true ? "right" : right === false ? "wrong" : "";
  const said = [
    place ? `${place}.` : "", label || name, similarity === undefined ? "" : `similarity ${similarity.toFixed(2)}`,
    right === true ? "same class" : right === false ? "other class" : "", foreign ? "" : "more like this",
  ].filter(Boolean).join(", ");
  const picture = source === "" ? make("span", { class: "bare", "aria-hidden": "true" }, name) : make("img", { src: source || `/thumbnail/${id}`, alt: "", loading: "lazy", decoding: "async", width: 192, height: 192 });
  if (source !== "") picture.addEventListener("load", () => picture.classList.toggle("pixels", Math.max(picture.naturalWidth, picture.naturalHeight) < 80));
  const bar = make("i");
  if (similarity !== undefined) bar.style.width = `${Math.max(0, Math.min(1, similarity)) * 100}%`;
  return make("li", {},
    make(foreign ? "div" : "a", { class: `tile ${verdict}`, href: foreign ? null : link({ ...keep, id }), role: foreign ? "img" : null, "aria-label": said, title: name, "data-id": id },
      picture,
      verdict && make("span", { class: "sign", "aria-hidden": "true" }, right ? "✓" : "✕"),
      make("span", { class: "row", "aria-hidden": "true" },
        make("span", { class: "name" }, label || name),
        similarity !== undefined && make("span", { class: "number" }, similarity.toFixed(2))),
      similarity !== undefined && make("span", { class: "bar", "aria-hidden": "true" }, bar)));
}

export function grid(images, keep = {}, numbered = false) {
  const list = make("ul", { class: "grid" }, images.map((image, at) => tile(image, keep, numbered ? at + 1 : 0)));
  list.addEventListener("keydown", (event) => {
    const tiles = [...list.querySelectorAll(".tile")];
    const at = tiles.indexOf(document.activeElement);
    if (at < 0) return;
    const columns = getComputedStyle(list).gridTemplateColumns.split(" ").length;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -at, End: tiles.length - 1 - at }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    tiles[Math.max(0, Math.min(tiles.length - 1, at + step))].focus();
  });
  return list;
}
