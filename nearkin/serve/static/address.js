// What is shown stands in the address: it can be shared, kept, and gone back to.
export function state() { return Object.fromEntries(new URLSearchParams(location.search)); }

export function link(facts) {
  const given = Object.entries(facts).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(given).toString();
  return query ? `/?${query}` : "/";
}

let listener = () => {};
export function onchange(act) {
  listener = act;
  addEventListener("popstate", () => act());
  // A plain click on a link of the page changes what is shown without loading anew.
  document.addEventListener("click", (event) => {
    const found = event.target.closest && event.target.closest("a[href^='/?'], a[href='/']");
    if (!found || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(found.getAttribute("href"));
  });
}

export function go(address, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  listener();
}
