"""The little that moves: a switch between light and dark, tables that sort, edges that fade where a box goes on, the
section in view marked in the menu.

The page is whole without it.
"""

SCRIPT = """
(function () {
  var root = document.documentElement, button = document.getElementById('theme');
  var dark = window.matchMedia('(prefers-color-scheme: dark)');
  function now() { return root.dataset.theme || (dark.matches ? 'dark' : 'light'); }
  function show() { button.textContent = now() === 'dark' ? 'Light' : 'Dark'; }
  try { if (localStorage.nearkinTheme) root.dataset.theme = localStorage.nearkinTheme; } catch (error) {}
  button.hidden = false;
  button.onclick = function () {
    root.dataset.theme = now() === 'dark' ? 'light' : 'dark';
    try { localStorage.nearkinTheme = root.dataset.theme; } catch (error) {}
    show();
  };
  dark.addEventListener('change', show);
  show();
  function key(row, place) {
    var cell = row.cells[place];
    if (!cell || row.classList.contains('hole')) return null;
    var text = cell.dataset.sort === undefined ? cell.textContent : cell.dataset.sort, number = parseFloat(text);
    return text === 'nan' || text === '' ? null : isNaN(number) || !/^[-+0-9.]/.test(text) ? text : number;
  }
  document.querySelectorAll('table.sortable').forEach(function (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, place) {
      var sort = document.createElement('button');
      while (head.firstChild) sort.appendChild(head.firstChild);
      head.appendChild(sort);
      sort.onclick = function () {
        var before = head.getAttribute('aria-sort');
        var down = before ? before === 'ascending' : head.classList.contains('number') && place > 0;
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (other) { other.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        var rows = Array.prototype.slice.call(table.tBodies[0].rows);
        rows.sort(function (one, other) {
          var a = key(one, place), b = key(other, place);
          if (a === null || b === null) return (a === null) - (b === null);
          var way = typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b));
          return down ? -way : way;
        });
        rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
      };
    });
  });
  document.querySelectorAll('.scroll, .panels.many, nav').forEach(function (box) {
    function more() {
      var before = box.scrollLeft > 2, after = box.scrollLeft + box.clientWidth < box.scrollWidth - 2;
      if (before || after) box.dataset.more = before && after ? 'both' : after ? 'right' : 'left';
      else delete box.dataset.more;
    }
    box.addEventListener('scroll', more, { passive: true });
    if (window.ResizeObserver) new ResizeObserver(more).observe(box);
    more();
  });
  function mark(links) {
    var at = null, ended = false, all = document.querySelectorAll('main section'), last = all[all.length - 1];
    function show() {
      var now = '#' + (ended ? last : at || all[0]).id;
      links.forEach(function (link) {
        if (link.getAttribute('href') === now) link.setAttribute('aria-current', 'true');
        else link.removeAttribute('aria-current');
      });
    }
    // The section that crosses a line in the upper part of the window; the last one, which may be short, at the end.
    var line = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) { if (entry.isIntersecting) at = entry.target; });
      show();
    }, { rootMargin: '-25% 0px -74% 0px' });
    all.forEach(function (section) { line.observe(section); });
    new IntersectionObserver(function (entries) {
      ended = entries[entries.length - 1].isIntersecting;
      show();
    }, { threshold: 1 }).observe(document.querySelector('footer'));
  }
  if (window.IntersectionObserver) mark(document.querySelectorAll('nav a'));
  function open() {
    var place = location.hash && document.getElementById(location.hash.slice(1));
    for (; place; place = place.parentElement) if (place.tagName === 'DETAILS') place.open = true;
  }
  window.addEventListener('hashchange', open);
  open();
})();
"""
