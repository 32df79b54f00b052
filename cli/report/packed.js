// Where every block lies: time to the right, offset upwards, a rectangle a block.

const LEAST_PIXELS = 0.25; // of width or height; what is smaller is counted, not drawn

class Packed {
  constructor(canvas, head, kinds, sites) {
    this.chart = new Chart(canvas, { left: 78, right: 12, top: 8, bottom: 42 });
    this.chart.paint = (c, box) => this.paint(c, box);
    Object.assign(this, { head, kinds, sites, by: "site", picked: -1, found: null });
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
    const { blocks, offsets, height, view, period } = this.layout;
    const highest = height * 1.02;
    this.chart.axes(c, box, view, highest, `${this.layout.unit}s${period ? " of one iteration" : ""}`);
    c.save();
    c.beginPath();
    c.rect(box.left, box.top, box.width, box.height);
    c.clip();
    const perTime = box.width / (view.high - view.low), perByte = box.height / highest;
    const { of, colours } = this.colours;
    const kindBytes = this.kinds.bytes, kindOf = blocks.kind;
    let drawn = 0, small = 0, nowhere = 0, outside = 0;
    const paths = colours.map(() => []);
    const add = (i, from, to) => {
      if (to <= view.low || from >= view.high) return 0;
      const width = (Math.min(to, view.high) - Math.max(from, view.low)) * perTime;
      const tall = kindBytes[kindOf[i]] * perByte;
      if (width < LEAST_PIXELS || tall < LEAST_PIXELS) return -1;
      const x = box.left + (Math.max(from, view.low) - view.low) * perTime;
      const y = box.bottom - offsets[i] * perByte - tall;
      paths[of[i]].push(x, y, width, tall, i);
      return 1;
    };
    for (let i = 0; i < blocks.count; ++i) {
      if (offsets[i] < 0) {
        ++nowhere;
        continue;
      }
      const end = blocks.end[i];
      let done = period && end > period ? Math.max(add(i, blocks.start[i], period), add(i, 0, end - period)) :
        add(i, blocks.start[i], end);
      if (done > 0) ++drawn;
      else if (done < 0) ++small;
      else ++outside;
    }
    this.fill(c, paths, colours);
    this.outline(c, box, perTime, perByte);
    this.crossHair(c, box);
    c.restore();
    this.onDrawn({ drawn, small, nowhere, outside });
  }

  fill(c, paths, colours) {
    const edges = [];
    for (let k = 0; k < paths.length; ++k) {
      const path = paths[k];
      for (const dim of this.found ? [true, false] : [false]) {
        c.fillStyle = colours[k];
        c.globalAlpha = dim ? 0.18 : 1;
        for (let j = 0; j < path.length; j += 5) {
          if (this.found && (this.found[this.layout.blocks.kind[path[j + 4]]] === 0) !== dim) continue;
          c.fillRect(path[j], path[j + 1], path[j + 2], path[j + 3]);
          if (path[j + 2] > 5 && path[j + 3] > 5) edges.push(path[j], path[j + 1], path[j + 2], path[j + 3]);
        }
      }
    }
    c.globalAlpha = 0.55;
    c.strokeStyle = theme("--panel");
    c.lineWidth = 1;
    for (let j = 0; j < edges.length; j += 4) c.strokeRect(edges[j], edges[j + 1], edges[j + 2], edges[j + 3]);
    c.globalAlpha = 1;
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
    for (const i of this.liveAt(time)) {
      const begin = this.layout.offsets[i];
      if (offset >= begin && offset < begin + this.kinds.bytes[this.layout.blocks.kind[i]]) return i;
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
