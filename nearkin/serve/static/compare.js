// Two losses side by side: queries that one gets right and the other does not.
import { ask } from "./ask.js";
import { count, make } from "./dom.js";
import { grid } from "./tiles.js";

export function compare({ board }, experiment) {
  const labels = board.map(({ label }) => label);
  const choose = (name, chosen) => make("select", { "aria-label": name }, labels.map((label) => make("option", { value: label, selected: label === chosen }, label)));
  const [one, other] = [choose("First loss", labels[0]), choose("Second loss", labels[1])];
  const place = make("div");
  const show = make("button", { type: "button", onclick: draw }, "Compare");
  async function draw() {
    show.disabled = true;
    try {
      const found = await ask("/api/compare", { one: one.value, other: other.value, experiment });
      place.replaceChildren(...strips(found, experiment));
    } catch (error) {
      place.replaceChildren(make("p", { class: "small", role: "alert" }, error.message));
    }
    show.disabled = false;
  }
  return make("section", { class: "card comparing" }, make("h2", {}, "Side by side"),
    make("div", { class: "tools" }, one, make("span", { class: "soft" }, "against"), other, show), place);
}

function strips({ one, other, tally, queries, why }, experiment) {
  const said = make("p", { class: "summary", role: "status" },
    `Only ${one} is right on `, make("b", {}, count(tally.one)), `, only ${other} on `, make("b", {}, count(tally.other)),
    `, both on ${count(tally.both)}, neither on ${count(tally.neither)} queries of their first runs.`);
  if (why) return [said, make("p", { class: "soft small" }, `Pictures are not shown: ${why}.`)];
  const shown = ({ row, ...rest }) => ({ ...rest, id: row, source: `/test-image/${experiment}/${row}` });
  return [said, make("ol", { class: "strips" }, queries.map((query) => make("li", { class: "card strip" },
    make("div", { class: "query" }, grid([shown({ row: query.row, label: query.label })])),
    make("div", { class: "both" }, make("h3", {}, one), grid(query.one.map(shown)), make("h3", {}, other), grid(query.other.map(shown))))))];
}
