// Puts the page of one input together.

function fillTables(head) {
  const { stats, provenance } = head;
  document.title = `Reprise report: ${provenance.input}`;
  byId("name").textContent = provenance.input;
  byId("verdict").textContent = head.verdict;
  byId("coverage").textContent = head.coverage;
  byId("figures").append(...keyFigures(head));
  byId("sites").append(siteTable(stats));
  byId("sizes").append(sizeTable(stats));
  byId("libraries").append(libraryTable(stats));
  byId("streams").append(streamTable(head));
  byId("without").append(withoutTable(head));
  byId("merged").append(mergedTable(head));
  byId("histogram").append(classTable(stats.histogram, "From (bytes)", formatSize));
  byId("lifetimes").append(classTable(stats.lifetimes.classes, `From (${stats.lifetimes.unit === "us" ? "µs" : stats.lifetimes.unit})`, formatCount));
  byId("iterations").textContent = !stats.iteration ? "No iteration was found: nothing repeats and comes back to the same live bytes." :
    `${plural(stats.iterations, "iteration")}, the last of ${formatCount(stats.iteration.tokens)} allocations of at least 4 KiB, ` +
    `first found at event ${formatCount(stats.iteration.found_at)}; it allocates ${formatSize(stats.iteration.allocated)}.`;
  byId("provenance").append(pairs(flattened({ ...provenance, command: provenance.command?.join(" ") ??
    (provenance.redacted ? "redacted" : "unknown"), host: provenance.host ?? (provenance.redacted ? "redacted" : "unknown") })));
  byId("counters").append(head.counters ? pairs(flattened(head.counters)) :
    element("p", { className: "quiet", textContent: "No summary of the run was found beside the input." }));
}

function fillMissing(head) {
  const lines = [...head.notes, ...head.left_out];
  const { all, drawn, largest_left, live_left } = head.blocks;
  if (drawn < all) {
    lines.push(`${formatCount(all - drawn)} of ${formatCount(all)} blocks are in no chart of layouts: those with the least ` +
      `size times lifetime. The largest has ${formatSize(largest_left)}; at most ${formatSize(live_left)} of them are live at once.`);
  }
  if (head.timeline.step > 1) {
    lines.push(`The time line has a point for every ${formatCount(head.timeline.step)} ${head.time_unit}s: ` +
      "the least and the most of them.");
  }
  if (head.peak_stacks_left > 0) lines.push(`${plural(head.peak_stacks_left, "stack")} of the peak are not in the flame graph.`);
  if (head.stats.dropped > 0) lines.push(`The recorder lost ${plural(head.stats.dropped, "event")}.`);
  if (lines.length === 0) lines.push("Nothing was left out.");
  byId("missing").append(element("ul", {}, ...lines.map((line) => element("li", { textContent: line }))));
}

function startCapacity(head) {
  const input = byId("capacity");
  const show = () => {
    const bytes = input.value === "" ? null : Math.round(Number(input.value) * 1024 ** 3);
    byId("allocators").replaceChildren(allocatorTable(head, Number.isFinite(bytes) ? bytes : null));
    byId("capacity-text").textContent = bytes === null ? "Enter one to see for which it is enough." :
      "Judged by what each reserves without a limit, where the command has not tried it.";
  };
  if (head.compare.capacity !== null) input.value = head.compare.capacity / 1024 ** 3;
  input.addEventListener("input", show);
  show();
}

// The layouts that can be drawn, the plan first.
function layoutsOf(head, data, view) {
  const events = blocksFrom(data.column("start"), data.column("length"), data.column("kind"), true);
  const layouts = head.layouts.map((layout) => ({
    ...layout, blocks: events, offsets: offsetsFrom(data.column(layout.column), layout.unit), view, unit: head.time_unit,
  }));
  if (head.plan) {
    layouts.unshift({
      name: `plan of ${roundsOf(head.plan)}`, meaning: "what Reprise would lay out", height: head.plan.slab, closed_up: 0,
      blocks: blocksFrom(data.column("plan.start"), data.column("plan.length"), data.column("plan.kind"), false),
      offsets: offsetsFrom(data.column("plan.offset"), head.plan.unit), view: new View(head.plan.period),
      unit: "allocation", period: head.plan.period,
    });
  }
  return layouts;
}

function describeBlock(packed, i) {
  const { blocks, offsets, unit, period } = packed.layout;
  const kind = blocks.kind[i];
  const until = period || blocks.end[i] < packed.head.timeline.events ? formatCount(blocks.end[i]) : "the end, never freed";
  return `${formatSize(packed.kinds.bytes[kind])} at offset ${formatSize(offsets[i])}, ${unit} ${formatCount(blocks.start[i])} ` +
    `to ${until}, stream ${packed.head.streams[packed.kinds.stream[kind]]}, ${packed.sites.labelOf(packed.kinds.stack[kind])}`;
}

function showPicked(packed, i) {
  const frames = packed.sites.framesOf(packed.kinds.stack[packed.layout.blocks.kind[i]]);
  byId("picked").replaceChildren(
    element("p", {}, element("b", { textContent: "Picked: " }), describeBlock(packed, i)),
    ...(frames.length === 0 ? [] : [element("ol", {}, ...frames.map((frame) =>
      element("li", { textContent: frame.text, className: frame.python ? "" : "native" })))]));
}

function startPacked(head, data, view, kinds, sites) {
  const layouts = layoutsOf(head, data, view);
  const packed = new Packed(byId("packed"), head, kinds, sites);
  const select = byId("layout"), text = byId("packed-text");
  if (layouts.length === 0) {
    byId("packed").replaceWith(element("p", { textContent: "No layout was worked out; see what was left out, below." }));
    select.closest(".row").remove();
    return { packed, relegend: () => {} };
  }
  packed.by = byId("colour").value = sites.known ? "site" : "size";
  layouts.forEach((layout, i) => select.append(element("option", { value: i, textContent: layout.name })));
  const legend = () => byId("legend").replaceChildren(...packed.colours.legend.map(({ colour, label }) => {
    const swatch = element("i");
    swatch.style.background = colour;
    return element("span", {}, swatch, label);
  }));
  const show = () => {
    packed.show(layouts[Number(select.value)]);
    byId("picked").replaceChildren();
    legend();
  };
  let counts = "", under = "";
  const say = () => {
    const { meaning, closed_up, height } = packed.layout;
    const closed = closed_up > 0 ? ` ${formatSize(closed_up)} of addresses where no block ever lay are closed up.` : "";
    text.textContent = `${meaning}: ${formatSize(height)} high.${closed} ${counts} ${under}`;
    packed.chart.canvas.setAttribute("aria-label", `Layout "${packed.layout.name}": time in ${packed.layout.unit}s to the ` +
      `right, offset in bytes upwards. ${counts}`);
  };
  packed.onDrawn = ({ drawn, small, nowhere, outside }) => {
    const left = head.blocks.all - head.blocks.drawn;
    counts = `${plural(drawn, "block")} drawn, ${formatCount(small)} under a quarter of a pixel` +
      (outside > 0 ? `, ${formatCount(outside)} outside this span` : "") +
      (nowhere > 0 ? `, ${formatCount(nowhere)} without a place` : "") +
      (left > 0 && !packed.layout.period ? `, ${formatCount(left)} not on the page` : "") +
      (packed.layout.period ? `, ${formatCount(head.plan.persistent)} persistent and not planned` : "") + ".";
    say();
  };
  packed.onHover = (i) => {
    under = i < 0 ? "" : `Under the pointer: ${describeBlock(packed, i)}.`;
    say();
  };
  packed.onPick = (i) => showPicked(packed, i);
  select.addEventListener("change", show);
  byId("colour").addEventListener("change", (event) => {
    packed.colour(event.target.value);
    legend();
  });
  show();
  return { packed, relegend: legend };
}

function startTimeline(head, data, view) {
  const timeline = new Timeline(byId("timeline"), head, data, view);
  for (const series of [...timeline.levels, ...timeline.lines]) {
    const box = element("input", { type: "checkbox", checked: series.shown });
    box.addEventListener("change", () => {
      series.shown = box.checked;
      timeline.chart.changed();
    });
    const name = element("span", { textContent: series.name });
    name.style.borderBottom = `3px ${series.at === undefined ? "solid" : "dashed"} ` +
      (typeof series.colour === "function" ? `var(${series.name === "lower bound" ? "--bound" : "--slab"})` : series.colour);
    byId("series").append(element("label", {}, box, " ", name));
  }
  const text = (time) => {
    byId("timeline-text").textContent = timeline.describe(time);
  };
  timeline.hover = text;
  text(head.peak_at_event ?? 0);
  byId("timeline").setAttribute("aria-label",
    `Live bytes over ${formatCount(head.timeline.events)} ${head.time_unit}s, at most ${formatSize(head.stats.live_peak)}; ` +
    timeline.lines.map((line) => `${line.short} reserves at most ${formatSize(line.highest)}`).join("; "));
  return timeline;
}

function startSearch(packed, kinds, sites) {
  byId("search").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    const ofStack = new Map();
    const matches = (kind) => {
      const stack = kinds.stack[kind];
      if (!ofStack.has(stack)) {
        const text = [sites.labelOf(stack), ...sites.framesOf(stack).map((frame) => frame.text)].join("\n").toLowerCase();
        ofStack.set(stack, text.includes(wanted));
      }
      return ofStack.get(stack);
    };
    packed.search(wanted === "" ? null : matches);
    markRows(wanted);
  });
}

async function main() {
  const charts = startTheme();
  const head = readHead();
  fillTables(head);
  fillMissing(head);
  startCapacity(head);
  const data = await readData();
  const sites = new Sites(data.sites);
  const kinds = { bytes: data.column("kind.bytes"), stack: data.column("kind.stack"), stream: data.column("kind.stream") };
  const view = new View(head.timeline.events);
  const timeline = startTimeline(head, data, view);
  const { packed, relegend } = startPacked(head, data, view, kinds, sites);
  charts.push(timeline.chart, packed.chart);
  if (head.peak_stacks.length > 0 && sites.known) {
    const flame = new Flame(byId("flame"), byId("flame-text"), flameTree(head.peak_stacks, sites));
    flame.canvas.setAttribute("aria-label", "Flame graph: bytes live at the peak by stack, outermost frame at the bottom");
    charts.push(flame.chart);
  } else {
    byId("flame").hidden = true;
    byId("flame-text").textContent = "The input has no stacks.";
  }
  byId("theme").addEventListener("change", () => {
    if (!packed.layout) return;
    packed.colour(packed.by);
    relegend();
  });
  startSearch(packed, kinds, sites);
}

drawOrSay(main);
