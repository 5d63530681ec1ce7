// The page: reads what the index is, and shows the view that the address names.
import { ask, calm, complain } from "./ask.js";
import { link, onchange, state } from "./address.js";
import { count, images, make } from "./dom.js";
import { listen } from "./send.js";
import { theme } from "./theme.js";
import * as doctor from "./doctor.js";
import * as losses from "./losses.js";
import * as map from "./map.js";
import * as runs from "./runs.js";
import * as search from "./search.js";
import * as strips from "./strips.js";

const VIEWS = {
  search: { title: "Search", show: search.show },
  map: { title: "Map", show: map.show },
  strips: { title: "Strips", show: strips.show },
  doctor: { title: "Doctor", show: doctor.show },
  losses: { title: "Losses", show: losses.show },
};
const RUNS = { title: "Runs", show: runs.show };  // where results were given

const main = document.getElementById("main");
const tabs = document.getElementById("tabs");
let facts = null;
let leave = null;
let before = "";
let turn = 0;

// Where a view draws itself. It takes the place of the one before with its first content, so that nothing flickers; a view
// that was left before its answer came draws into a room that nobody sees.
function room(mine) {
  const found = make("div");
  for (const name of ["replaceChildren", "append"]) {
    found[name] = (...content) => {
      if (mine === turn && found.parentNode !== main) main.replaceChildren(found);
      Element.prototype[name].apply(found, content);
    };
  }
  return found;
}

async function show() {
  const mine = ++turn;
  const { tab = "search" } = state();
  const name = VIEWS[tab] ? tab : "search";
  const view = VIEWS[name];
  calm();
  tabs.replaceChildren(...Object.entries(VIEWS).map(([key, { title }]) =>
    make("a", { href: key === "search" ? "/" : link({ tab: key }), "aria-current": key === name ? "page" : null }, title)), ...(facts.report ? [make("a", { href: "/report" }, "Report")] : []));
  tabs.hidden = Object.keys(VIEWS).length < 2;
  document.title = `${view.title} · ${facts.name} · nearkin`;
  if (leave) leave();
  leave = null;
  if (!facts.images) await read();  // images may have come since
  if (mine !== turn) return;
  if (before && before !== location.href) { scrollTo(0, 0); }
  const moved = before && before !== location.href;
  before = location.href;
  const end = (await view.show(room(mine), facts)) || null;
  if (mine !== turn) {
    if (end) end();
    return;
  }
  leave = end;
  if (moved && (!document.activeElement || document.activeElement === document.body)) main.focus({ preventScroll: true });
}

async function begin() {
  theme(document.getElementById("theme"));
  try {
    await read();
  } catch (error) {
    complain(error);
    return;
  }
  listen();
  onchange(show);
  await show();
}

async function read() {
  facts = await ask("/api/index");
  if (facts.runs) VIEWS.runs = RUNS;
  const classes = facts.classes.length;
  const parts = [facts.name, images(facts.images), classes ? `${count(classes)} ${classes === 1 ? "class" : "classes"}` : "no classes", `${facts.dim} dimensions`];
  if (facts.loss) parts.push(`${facts.loss.replaceAll("_", " ")} on ${facts.network}`);
  document.getElementById("about").textContent = parts.join(" · ");
}

begin();
