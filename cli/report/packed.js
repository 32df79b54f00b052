// Where every block lies: time to the right, offset upwards, a rectangle a block.

const LEAST_PIXELS = 0.25; // of width or height; what is smaller is counted, not drawn

class Packed {
  constructor(canvas, head, kinds, sites) {
    this.chart = new Chart(canvas, { left: 78, right: 12, top: 8, bottom: 42 });
    this.chart.paint = (c, box) => this.paint(c, box);
    Object.assign(this, { head, kinds, sites, by: "site", picked: -1, found: null, raster: new Raster() });
    this.onDrawn = () => {};
    this.onPick = () => {};
    this.onHover = () => {};
    steer(this.chart, () => this.layout.view, {
      pick: (x, y, step) => this.pick(x, y, step),
      hover: (x, y) => this.onHover(this.at(x, y)),
    });
  }

  // {name, blocks, offsets, height, view, unit, period}
  show(layout) {
    this.layout = layout;
    this.picked = -1;
    if (!layout.listening) {
      layout.view.listeners.push(() => this.layout === layout && this.chart.changed());
      layout.listening = true;
    }
    this.colour(this.by);
  }
  colour(by) {
    this.by = by;
    const { blocks, unit } = this.layout;
    this.colours = colouring(by, blocks, this.kinds, this.sites, this.head.streams, unit);
    this.chart.changed();
  }
  // Marks the kinds for which `matches(kind)`; null: no search.
  search(matches) {
    this.found = matches && Uint8Array.from(this.kinds.bytes, (_, kind) => (matches(kind) ? 1 : 0));
    this.chart.changed();
  }

  // The one or two spans of time that a block has: one that wraps ends in the next round.
  spans(i) {
    const { blocks, period } = this.layout;
    const start = blocks.start[i], end = blocks.end[i];
    return period && end > period ? [[start, period], [0, end - period]] : [[start, end]];
  }

  paint(c, box) {
    const { height, view, period } = this.layout;
    const highest = height * 1.02;
    this.chart.axes(c, box, view, highest, `${this.layout.unit}s${period ? ` of ${roundsOf(this.head.plan)}` : ""}`);
    this.chart.clip(c, box);
    const perTime = box.width / (view.high - view.low), perByte = box.height / highest;
    const counts = this.rasterise(box, perTime, perByte, period);
    this.raster.end(c, box.left, box.top, box.width, box.height);
    this.outline(c, box, perTime, perByte);
    this.crossHair(c, box);
    c.restore();
    this.onDrawn(counts);
  }

  // All blocks of the view as pixels of the screen; says how many of them were not drawn, and why.
  rasterise(box, perTime, perByte, period) {
    const { blocks, offsets, view } = this.layout;
    const ratio = window.devicePixelRatio || 1;
    const { raster, found } = this;
    raster.begin(Math.round(box.width * ratio), Math.round(box.height * ratio));
    const panel = theme("--panel");
    const plain = this.colours.colours.map((colour) => pixel(colour));
    const edges = this.colours.colours.map((colour) => pixel(colour, panel, 0.5));
    const dim = this.colours.colours.map((colour) => pixel(colour, panel, 0.82));
    const { of } = this.colours;
    const kindBytes = this.kinds.bytes, kindOf = blocks.kind;
    const low = view.low, high = view.high, perX = perTime * ratio, perY = perByte * ratio;
    let drawn = 0, small = 0, nowhere = 0, outside = 0;
    // 1: drawn; 0: outside of the view; -1: too small.
    const add = (i, from, to) => {
      if (to <= low || from >= high) return 0;
      const left = (Math.max(from, low) - low) * perX, right = (Math.min(to, high) - low) * perX;
      const tall = kindBytes[kindOf[i]] * perY;
      if (right - left < LEAST_PIXELS || tall < LEAST_PIXELS) return -1;
      const bottom = raster.height - offsets[i] * perY;
      const faded = found && found[kindOf[i]] === 0;
      raster.rectangle(left, bottom - tall, right, bottom, (faded ? dim : plain)[of[i]], (faded ? dim : edges)[of[i]]);
      return 1;
    };
    for (let i = 0; i < blocks.count; ++i) {
      if (offsets[i] < 0) {
        ++nowhere;
        continue;
      }
      const start = blocks.start[i], end = blocks.end[i];
      const done = period && end > period ? Math.max(add(i, start, period), add(i, 0, end - period)) : add(i, start, end);
      if (done > 0) ++drawn;
      else if (done < 0) ++small;
      else ++outside;
    }
    return { drawn, small, nowhere, outside };
  }

  outline(c, box, perTime, perByte) {
    if (this.picked < 0) return;
    const { offsets, view, blocks } = this.layout;
    const tall = this.kinds.bytes[blocks.kind[this.picked]] * perByte;
    c.strokeStyle = theme("--picked");
    c.lineWidth = 3;
    for (const [from, to] of this.spans(this.picked)) {
      c.strokeRect(box.left + (from - view.low) * perTime, box.bottom - offsets[this.picked] * perByte - tall,
        Math.max(2, (to - from) * perTime), Math.max(2, tall));
    }
  }

  crossHair(c, box) {
    if (this.chart.cursor === null) return;
    c.strokeStyle = theme("--quiet");
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(this.chart.cursor, box.top);
    c.lineTo(this.chart.cursor, box.bottom);
    c.stroke();
  }

  // The block at a place on the chart, or -1.
  at(x, y) {
    const { box } = this.chart;
    if (!box || x < box.left || x > box.right) return -1;
    const time = this.chart.timeOf(x, this.layout.view);
    const offset = ((box.bottom - y) / box.height) * this.layout.height * 1.02;
    const { blocks, offsets } = this.layout;
    for (let i = 0; i < blocks.count; ++i) {
      const begin = offsets[i];
      if (begin < 0 || offset < begin || offset >= begin + this.kinds.bytes[blocks.kind[i]]) continue;
      if (this.spans(i).some(([from, to]) => time >= from && time < to)) return i;
    }
    return -1;
  }
  *liveAt(time) {
    const { blocks, offsets } = this.layout;
    for (let i = 0; i < blocks.count; ++i) {
      if (offsets[i] >= 0 && this.spans(i).some(([from, to]) => time >= from && time < to)) yield i;
    }
  }

  // A click picks what is there. By keyboard: Enter the lowest live block under the cursor, up and down the next.
  pick(x, y, step) {
    if (step === undefined && this.at(x, y) >= 0) {
      this.picked = this.at(x, y);
    } else {
      const live = [...this.liveAt(this.chart.timeOf(x, this.layout.view))].sort(
        (a, b) => this.layout.offsets[a] - this.layout.offsets[b]);
      if (live.length === 0) return;
      const now = live.indexOf(this.picked);
      this.picked = now < 0 ? live[0] : live[Math.max(0, Math.min(live.length - 1, now - (step ?? 0)))];
    }
    this.onPick(this.picked);
    this.chart.changed();
  }
}
