// Tables. Everything that came from outside goes into the page as text, never as markup.

function element(name, properties, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

// columns: [{title, number, cell(row)}]; `most` rows are shown, the others counted. `searchText(row)`: what a search looks in.
function table(rows, columns, { caption, most = 100, searchText } = {}) {
  if (rows.length === 0) return element("p", { className: "quiet", textContent: "None." });
  const head = element("tr", {}, ...columns.map((column) =>
    element("th", { textContent: column.title, className: column.number ? "number" : "", scope: "col" })));
  const body = rows.slice(0, most).map((row) => {
    const line = element("tr", {}, ...columns.map((column) => {
      const content = column.cell(row);
      return element("td", { className: column.bar ? "bar" : column.number ? "number" : "" }, content);
    }));
    if (searchText) line.dataset.text = searchText(row);
    return line;
  });
  const node = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  if (caption) node.setAttribute("aria-label", caption);
  const all = element("div", { className: "scroll", tabIndex: -1 }, node);
  const left = rows.length - Math.min(most, rows.length);
  if (left > 0) all.append(element("p", { className: "quiet", textContent: `${plural(left, "more row")} not shown.` }));
  return all;
}

// Marks the rows that have `wanted` in their text, which is in lower case; "": none.
function markRows(wanted) {
  for (const row of document.querySelectorAll("tr[data-text]")) {
    row.classList.toggle("found", wanted !== "" && row.dataset.text.toLowerCase().includes(wanted));
  }
}

function bar(share) {
  const node = element("i");
  node.style.width = `${Math.max(0, Math.min(100, 100 * share)).toFixed(1)}%`;
  return node;
}

function pairs(entries) {
  return table(entries, [
    { title: "What", cell: ([name]) => name },
    { title: "Value", cell: ([, value]) => String(value) },
  ]);
}

function figure(name, value, note) {
  return element("div", { className: "figure" }, element("b", { textContent: value }),
    element("span", { textContent: note ? `${name}; ${note}` : name }));
}

function keyFigures(head) {
  const { stats, plan } = head;
  const figures = [figure("live peak", formatSize(stats.live_peak), head.peak_at_event === null ? "" :
    `at event ${formatCount(stats.peak_at)}`), figure("lower bound", formatSize(stats.lower_bound), "no slab can be lower")];
  if (plan) figures.push(figure(`slab of the plan of ${roundsOf(plan)}`, formatSize(plan.slab), `${formatShare(plan.gap)} above its bound`));
  figures.push(figure("allocated in all", formatSize(stats.allocated), plural(stats.allocs, "allocation")));
  if (stats.iteration) {
    figures.push(figure("persistent", formatSize(stats.iteration.persistent), "from one iteration to the next"));
    figures.push(figure("an iteration on top", formatSize(stats.iteration.peak - stats.iteration.persistent),
      `${plural(stats.iterations, "iteration")} seen`));
  }
  if (stats.leak) {
    const slope = stats.leak.bytes_per_iteration;
    figures.push(figure("leaking an iteration", `${slope < 0 ? "-" : ""}${formatSize(Math.abs(slope))}`,
      `by ${plural(stats.leak.cuts, "cut")}`));
  }
  figures.push(figure("live at the end", formatSize(stats.live_at_end)));
  return figures;
}

function siteTable(stats) {
  if (stats.sites.length === 0) {
    return element("p", { className: "quiet", textContent: "The input has no stacks, so nothing here says which line it was." });
  }
  return table(stats.sites, [
    { title: "Site", cell: (s) => s.label },
    { title: "Bytes", number: true, cell: (s) => formatSize(s.bytes) },
    { title: "Share", number: true, cell: (s) => formatShare(s.bytes / stats.live_peak) },
    { title: "Blocks", number: true, cell: (s) => formatCount(s.blocks) },
    { title: "", bar: true, cell: (s) => bar(s.bytes / stats.live_peak) },
  ], { caption: "Sites at the peak", searchText: (s) => `${s.label} ${s.file} ${s.function} ${s.library}` });
}

function sizeTable(stats) {
  return table(stats.at_peak, [
    { title: "Size of a block", number: true, cell: (s) => formatSize(s.size) },
    { title: "Blocks", number: true, cell: (s) => formatCount(s.blocks) },
    { title: "Bytes", number: true, cell: (s) => formatSize(s.size * s.blocks) },
    { title: "Share", number: true, cell: (s) => formatShare((s.size * s.blocks) / stats.live_peak) },
    { title: "", bar: true, cell: (s) => bar((s.size * s.blocks) / stats.live_peak) },
  ], { caption: "Sizes at the peak" });
}

function libraryTable(stats) {
  if (stats.libraries.length === 0) {
    return element("p", { className: "quiet", textContent: "The input has no native stacks, and only they name libraries." });
  }
  return table(stats.libraries, [
    { title: "Asked by", cell: (l) => l.library || "(not known)" },
    { title: "Bytes", number: true, cell: (l) => formatSize(l.bytes) },
    { title: "Share", number: true, cell: (l) => formatShare(l.bytes / stats.live_peak) },
    { title: "Blocks", number: true, cell: (l) => formatCount(l.blocks) },
  ], { caption: "Libraries at the peak", searchText: (l) => l.library });
}

function streamTable(head) {
  return table(head.stats.streams, [
    { title: "Stream", cell: (s) => s.stream },
    { title: "Bytes", number: true, cell: (s) => formatSize(s.bytes_at_peak) },
    { title: "Share", number: true, cell: (s) => formatShare(s.bytes_at_peak / head.stats.live_peak) },
    { title: "Its own peak", number: true, cell: (s) => formatSize(s.live_peak) },
    { title: "Allocated", number: true, cell: (s) => formatSize(s.allocated) },
  ], { caption: "Streams at the peak" });
}

// `capacity`: bytes, or null. Whether it is enough was tried by the command for one capacity only.
function allocatorTable(head, capacity) {
  const tried = head.compare.capacity;
  const fits = (a) => {
    if (capacity === null) return "";
    if (capacity === tried && a.fits !== null) return a.fits ? "yes, tried" : `no, fails at event ${a.failed_at ?? "?"}`;
    if (capacity < head.stats.live_peak) return "no, below the live peak";
    return capacity >= a.reserved_peak ? "yes" : "not without giving back what it caches: not tried";
  };
  const peak = head.compare.live_peak;
  return table(head.compare.allocators, [
    { title: "Allocator", cell: (a) => a.name },
    { title: "Reserved at most", number: true, cell: (a) => formatSize(a.reserved_peak) },
    { title: "Over live peak", number: true, cell: (a) => `${a.reserved_peak >= peak ? "+" : ""}${formatShare(a.reserved_peak / peak - 1)}` },
    { title: "Calls of the driver", number: true, cell: (a) => (a.driver_allocations === null ? "unknown" : formatCount(a.driver_allocations)) },
    ...(capacity === null ? [] : [{ title: "Fits", cell: fits }]),
  ], { caption: "Allocators" });
}

function withoutTable(head) {
  if (head.what_if.without_site.length === 0) {
    return element("p", { className: "quiet", textContent: "The input has no stacks, and so no sites to leave out." });
  }
  return table(head.what_if.without_site, [
    { title: "Without", cell: (w) => w.site },
    { title: "Peak", number: true, cell: (w) => formatSize(w.peak) },
    { title: "Saves", number: true, cell: (w) => formatSize(w.saves) },
  ], { caption: "The peak without a site", searchText: (w) => w.site });
}

function mergedTable(head) {
  if (head.streams.length < 2) {
    return element("p", { className: "quiet", textContent: "There is one stream only." });
  }
  if (head.what_if.merged.length === 0) {
    return element("p", { className: "quiet", textContent: "No allocator was tried with that." });
  }
  return table(head.what_if.merged, [
    { title: "Allocator", cell: (m) => m.name },
    { title: "As recorded", number: true, cell: (m) => formatSize(m.apart) },
    { title: "Merged", number: true, cell: (m) => formatSize(m.together) },
  ], { caption: "Streams merged" });
}

function classTable(classes, title, show) {
  const most = Math.max(1, ...classes.map((c) => c.blocks));
  return table(classes, [
    { title, number: true, cell: (c) => show(c.from) },
    { title: "Blocks", number: true, cell: (c) => formatCount(c.blocks) },
    { title: "Bytes", number: true, cell: (c) => formatSize(c.bytes) },
    { title: "", bar: true, cell: (c) => bar(c.blocks / most) },
  ], { caption: title });
}

function flattened(value, prefix = "") {
  if (value === null || typeof value !== "object") return [[prefix, value]];
  return Object.entries(value).flatMap(([key, inner]) => flattened(inner, prefix ? `${prefix}.${key}` : key));
}
