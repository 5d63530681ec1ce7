// Ways an image comes in: dropped, pasted or picked. All end in one address.
import { ask, calm, complain, say } from "./ask.js";
import { go, link } from "./address.js";
import { make } from "./dom.js";

const MOST_BYTES = 20e6;

export async function send(blob) {
  calm();
  try {
    if (!blob) throw new Error("No image came with that; drop or paste a picture, or choose a file.");
    if (blob.size > MOST_BYTES) throw new Error("The image must have at most 20 MB; send a smaller one.");
    say("Looking for images like yours.");
    const { key } = await ask("/api/query", {}, { method: "POST", body: blob, headers: { "content-type": "application/octet-stream" } });
    go(link({ query: key }));
  } catch (error) {
    complain(error);
  }
}

export function picker(text, kind = "") {
  const input = make("input", { type: "file", accept: "image/*", class: "unseen", tabindex: "-1", "aria-hidden": "true" });
  input.addEventListener("change", () => { if (input.files.length) send(input.files[0]); input.value = ""; });
  return [make("button", { type: "button", class: kind, onclick: () => input.click() }, text), input];
}

export function listen() {
  let depth = 0;
  const files = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  const over = (on) => document.body.classList.toggle("over", on);
  addEventListener("dragenter", (event) => { if (files(event)) { depth += 1; over(true); } });
  addEventListener("dragleave", (event) => { if (files(event)) { depth -= 1; over(depth > 0); } });
  addEventListener("dragover", (event) => { if (files(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    depth = 0;
    over(false);
    send(event.dataTransfer.files[0]);
  });
  addEventListener("paste", (event) => {
    const found = [...event.clipboardData.files].find((file) => file.type.startsWith("image/"));
    if (found) { event.preventDefault(); send(found); }
  });
}
