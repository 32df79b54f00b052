// Puts the page of a job's ranks together. Its figures are those of `merge --json`, which the head holds as they are.

// Of a job: by rank what its summary says, or its trace alone where it has left none.
function ranksOf(merged, job) {
  const ranks = [];
  for (const rank of merged.ranks) ranks[rank.rank] = { ...rank, summary: true };
  for (const trace of job.traces) {
    const rank = ranks[trace.rank];
    if (rank) rank.trace = trace;
    else ranks[trace.rank] = { rank: trace.rank, live_peak: trace.live_peak, reserved_peak: 0, host: "", trace, summary: false };
  }
  const length = Math.max(ranks.length, Math.min(merged.world_size, 1 << 20));
  return Array.from({ length }, (_, i) => ranks[i] || null);
}

function gapOf(rank) {
  return rank.plans > 0 && rank.lower_bound > 0 ? formatShare(rank.slab / rank.lower_bound - 1) : "-";
}

// Of a rank whose summary is not of its end.
function asOf(rank) {
  return rank.running ? `as of ${new Date(1000 * rank.ended).toISOString().replace(/\.\d+/, "")}; killed since, ended by _exit, or still running` : "";
}

const FACTS = [
  { title: "Rank", number: true, cell: (r) => String(r.rank) },
  { title: "Host", cell: (r) => r.host || "-" },
  { title: "Live peak", number: true, cell: (r) => formatSize(r.live_peak) },
  { title: "", bar: true, cell: (r) => bar(r.share) },
  { title: "Reserved", number: true, cell: (r) => (r.summary ? formatSize(r.reserved_peak) : "-") },
  { title: "Bound", number: true, cell: (r) => (r.plans > 0 ? formatSize(r.lower_bound) : "-") },
  { title: "Slab", number: true, cell: (r) => (r.plans > 0 ? formatSize(r.slab) : "-") },
  { title: "Gap", number: true, cell: gapOf },
  { title: "Planned", number: true, cell: (r) => (r.plans > 0 ? formatShare(r.planned_bytes_after_plan) : "-") },
  { title: "Resumed", number: true, cell: (r) => (r.summary ? formatCount(r.plans_resumed) : "-") },
  { title: "Faults", number: true, cell: (r) => (r.summary ? formatCount(r.faults) : "-") },
  { title: "", cell: (r) => (r.summary ? [asOf(r), r.plans_refused].filter(Boolean).join("; ") :
    `no summary; the peak is that of its trace${r.trace.why_not_whole && `: ${r.trace.why_not_whole}`}`) },
];

function rankTable(ranks, merged, order) {
  const known = ranks.filter(Boolean);
  const most = known.reduce((sum, rank) => Math.max(sum, rank.live_peak), 1);
  const rows = known.map((rank) => ({ ...rank, share: rank.live_peak / most }));
  if (order !== "rank") rows.sort((a, b) => (b[order] || 0) - (a[order] || 0) || a.rank - b.rank);
  return table(rows, FACTS, { caption: "Ranks", most: 2000, searchText: (r) => `rank ${r.rank} ${r.host}` });
}

function figuresOf(merged, capacity, ranks) {
  const figures = [
    figure("ranks", `${merged.ranks.length} of ${merged.world_size}`, "with a summary"),
    figure("median live peak", formatSize(merged.median_live_peak)),
    figure("largest live peak", merged.ranks.length === 0 ? "-" :
      formatSize(merged.ranks.reduce((most, rank) => Math.max(most, rank.live_peak), 0)), merged.largest_rank === null ? "" :
      `rank ${merged.largest_rank}, ${merged.largest_over_median === null ? "above" : `${twoPlaces(merged.largest_over_median)} times`} the median`),
    figure("live peaks together", formatSize(merged.live_peak), "not all at one moment"),
    figure("reserved together", formatSize(merged.reserved_peak)),
    figure("slabs together", formatSize(merged.slab), `bounds ${formatSize(merged.lower_bound)}`),
    figure("faults", formatCount(merged.faults)),
  ];
  if (capacity !== null) {
    const over = ranks.filter((rank) => rank && rank.reserved_peak > capacity).length;
    figures.push(figure(`reserved more than ${formatSize(capacity)}`, plural(over, "rank")));
  }
  return figures;
}

class RanksPage {
  constructor(head, data, charts) {
    this.head = head;
    this.data = data;
    this.chart = new RanksChart(byId("peaks"));
    this.chart.onPick = (rank) => this.pick(rank);
    charts.push(this.chart.chart);
    byId("order").addEventListener("change", () => this.fillRanks());
    byId("rank").addEventListener("input", (event) => {
      const rank = Number(event.target.value);
      if (event.target.value !== "" && Number.isInteger(rank) && rank >= 0 && rank < this.ranks.length) this.pick(rank);
    });
    byId("search").addEventListener("input", () => this.search());
  }

  show(number) {
    this.job = this.head.jobs[number];
    this.merged = this.head.merge.jobs[number];
    this.ranks = ranksOf(this.merged, this.job);
    byId("verdict").textContent = this.job.verdict;
    byId("further").textContent = this.merged.further.length === 0 ? "" :
      `${plural(this.merged.further.length, "further process")}, not in the sums.`;
    byId("figures").replaceChildren(...figuresOf(this.merged, this.head.capacity, this.ranks));
    this.levels = [{ name: "median of the live peaks", at: this.merged.median_live_peak, colour: "--bound" }];
    if (this.head.capacity !== null) this.levels.push({ name: "capacity", at: this.head.capacity, colour: "--slab" });
    this.chart.show(this.ranks, this.levels);
    this.fillLegend();
    const unknown = this.ranks.filter((rank) => !rank).length;
    const text = `${plural(this.merged.ranks.length, "rank")}, live peaks at most ` +
      `${formatSize(this.ranks.reduce((most, rank) => Math.max(most, rank ? rank.live_peak : 0), 0))}, median ` +
      `${formatSize(this.merged.median_live_peak)}; ${formatCount(this.merged.missing_count)} without a summary` +
      (unknown > 0 ? `, of ${formatCount(unknown)} nothing is known` : "") + ".";
    byId("peaks-text").textContent = text;
    byId("peaks").setAttribute("aria-label", `Live peak of each rank. ${text}`);
    this.fillRanks();
    this.fillNotes();
    const first = this.merged.largest_rank ?? this.ranks.findIndex(Boolean);
    this.pick(Math.max(0, first));
  }

  fillLegend() {
    const entry = (colour, label) => {
      const swatch = element("i");
      swatch.style.background = `var(${colour})`;
      return element("span", {}, swatch, label);
    };
    byId("legend").replaceChildren(entry("--live", "live peak"), entry("--ink", "reserved"),
      ...this.levels.map((level) => entry(level.colour, `${level.name}, dashed`)), entry("--picked", "picked"),
      entry("--grid", "no summary"));
  }

  fillRanks() {
    byId("ranks").replaceChildren(rankTable(this.ranks, this.merged, byId("order").value));
    this.search();
  }

  fillNotes() {
    const lines = [...this.head.merge.errors, ...this.job.notes];
    if (this.merged.missing_count > 0) {
      const named = this.merged.missing.join(", ");
      lines.push(`No summary of rank ${named}${this.merged.missing_count > this.merged.missing.length ? " and more" : ""}.`);
    }
    if (this.job.rows_left > 0) {
      lines.push(`${plural(this.job.rows_left, `more ${this.job.by}`)}, in which the ranks differ less.`);
    }
    if (lines.length === 0) lines.push("Nothing was left out.");
    byId("missing").replaceChildren(element("ul", {}, ...lines.map((line) => element("li", { textContent: line }))));
  }

  pick(number) {
    const rank = this.ranks[number];
    this.chart.picked = number;
    this.chart.chart.changed();
    if (byId("rank").value !== String(number)) byId("rank").value = number;
    byId("picked").textContent = rank ? this.describe(rank) : `Of rank ${number} nothing is known.`;
    this.fillCompared(number);
  }

  describe(rank) {
    const times = this.merged.median_live_peak > 0 ? `, ${twoPlaces(rank.live_peak / this.merged.median_live_peak)} times the median` : "";
    const where = rank.host ? ` on ${rank.host}` : "";
    const reserved = rank.summary ? `, ${formatSize(rank.reserved_peak)} reserved` : " in its trace; it has left no summary";
    const whole = rank.trace && rank.trace.why_not_whole ? `. Its trace is not whole: ${rank.trace.why_not_whole}` : "";
    const page = rank.trace && rank.trace.file ? `. Its own page: reprise report ${rank.trace.file}` : "";
    return `Rank ${rank.rank}${where}: ${formatSize(rank.live_peak)} live${times}${reserved}${whole}${page}`;
  }

  fillCompared(number) {
    const { job } = this;
    const count = job.traces.filter((trace) => trace.column !== null).length;
    byId("compared-text").textContent = count === 0 ? "There is no trace to say it." :
      `By ${job.by}, of ${plural(count, "trace")}, each at its own peak.${job.not_whole && ` ${job.not_whole}.`}` +
      (job.by === "size" ? " With call stacks (--stacks) it would be by line of code." : "");
    const trace = job.traces.find((each) => each.rank === number && each.column !== null);
    const widest = Math.max(1, ...job.rows.map((row) => row.most - row.median));
    byId("compared").replaceChildren(table(job.rows, [
      { title: job.by === "site" ? "Site" : "Size", cell: (row) => row.label },
      { title: "Least", number: true, cell: (row) => formatSize(row.least) },
      { title: "Median", number: true, cell: (row) => formatSize(row.median) },
      { title: "Most", number: true, cell: (row) => formatSize(row.most) },
      { title: "at rank", number: true, cell: (row) => (row.most > row.median ? String(row.most_rank) : "-") },
      { title: "Above median", number: true, cell: (row) => formatSize(row.most - row.median) },
      { title: "", bar: true, cell: (row) => bar((row.most - row.median) / widest) },
      ...(trace ? [{ title: `Rank ${number}`, number: true, cell: (row) => formatSize(this.data.column(row.column)[trace.column]) }] : []),
    ], { caption: "Ranks compared", most: 200, searchText: (row) => row.label }));
    this.search();
  }

  search() {
    markRows(byId("search").value.trim().toLowerCase());
  }
}

async function main() {
  const charts = startTheme();
  const head = readHead();
  const page = new RanksPage(head, await readData(), charts);
  document.title = `Reprise report: ranks of ${head.provenance.input}`;
  byId("name").textContent = head.provenance.input;
  byId("provenance").append(pairs(flattened(head.provenance)));
  head.jobs.forEach((job, i) => byId("job").append(element("option", { value: i, textContent: job.name })));
  byId("jobs").hidden = head.jobs.length < 2;
  byId("job").addEventListener("change", (event) => page.show(Number(event.target.value)));
  page.show(0);
}

drawOrSay(main);
