// The time line: live bytes as a band from least to most, what allocators held as lines, slab and bound as levels.

const LINES = ["#e07b00", "#8e44ad", "#0f9d8f", "#c0392b", "#7f8c2a", "#d6006c", "#5d6d7e"];

class Timeline {
  constructor(canvas, head, data, view) {
    this.chart = new Chart(canvas, { left: 78, right: 12, top: 12, bottom: 42 });
    this.chart.paint = (c, box) => this.paint(c, box);
    this.head = head;
    this.view = view;
    this.step = head.timeline.step;
    this.least = data.column("live.least");
    this.most = data.column("live.most");
    this.time = head.timeline.timed ? data.column("time") : null;
    this.lines = head.timeline.reserved.map(({ name, column }, i) => ({
      name: `${name}, reserved`, short: name, values: data.column(column), colour: LINES[i % LINES.length],
      shown: name === "reprise" || name === "torch-native", highest: 0,
    }));
    for (const line of this.lines) for (const value of line.values) line.highest = Math.max(line.highest, value);
    this.levels = [{ name: "lower bound", at: head.stats.lower_bound, colour: () => theme("--bound"), shown: true }];
    if (head.plan) {
      this.levels.push({
        name: "plan: slab on what persists", at: head.plan.slab + head.plan.beside, colour: () => theme("--slab"), shown: true,
      });
    }
    view.listeners.push(() => this.chart.changed());
    steer(this.chart, () => this.view, {});
    this.hover = () => {};
  }

  get highest() {
    let highest = this.head.stats.live_peak;
    for (const line of this.lines) if (line.shown) highest = Math.max(highest, line.highest);
    for (const level of this.levels) if (level.shown) highest = Math.max(highest, level.at);
    return highest * 1.06;
  }

  // Points of the view, several to a pixel taken together.
  columns(box) {
    const { low, high } = this.view;
    const first = Math.max(0, Math.floor(low / this.step));
    const last = Math.min(this.most.length - 1, Math.ceil(high / this.step));
    const each = Math.max(1, Math.ceil((last - first + 1) / box.width));
    return { first, last, each };
  }

  paint(c, box) {
    const highest = this.highest;
    this.chart.axes(c, box, this.view, highest, `${this.head.time_unit}s`);
    const y = (bytes) => box.bottom - (bytes / highest) * box.height;
    const x = (point) => this.chart.xOf(point * this.step, this.view);
    const { first, last, each } = this.columns(box);
    this.chart.clip(c, box);
    this.paintLive(c, x, y, first, last, each);
    for (const line of this.lines) {
      if (!line.shown) continue;
      c.strokeStyle = line.colour;
      c.lineWidth = 1.5;
      c.beginPath();
      for (let i = first; i <= last; i += each) {
        let value = 0;
        for (let k = i; k < Math.min(i + each, line.values.length); ++k) value = Math.max(value, line.values[k]);
        if (i === first) c.moveTo(x(i), y(value));
        c.lineTo(x(i), y(value));
        c.lineTo(x(i + each), y(value));
      }
      c.stroke();
    }
    c.setLineDash([6, 4]);
    for (const level of this.levels) {
      if (!level.shown) continue;
      c.strokeStyle = level.colour();
      c.beginPath();
      c.moveTo(box.left, y(level.at));
      c.lineTo(box.right, y(level.at));
      c.stroke();
    }
    c.setLineDash([]);
    this.paintPeak(c, box, y);
    if (this.chart.cursor !== null) {
      c.strokeStyle = theme("--quiet");
      c.beginPath();
      c.moveTo(this.chart.cursor, box.top);
      c.lineTo(this.chart.cursor, box.bottom);
      c.stroke();
    }
    c.restore();
    if (this.chart.cursor !== null) this.hover(this.chart.timeOf(this.chart.cursor, this.view));
  }

  paintLive(c, x, y, first, last, each) {
    c.fillStyle = theme("--band");
    c.strokeStyle = theme("--live");
    c.lineWidth = 1.5;
    const top = [], bottom = [];
    for (let i = first; i <= last; i += each) {
      let most = 0, least = Infinity;
      for (let k = i; k < Math.min(i + each, this.most.length); ++k) {
        most = Math.max(most, this.most[k]);
        least = Math.min(least, this.least[k]);
      }
      top.push([x(i), y(most)], [x(i + each), y(most)]);
      bottom.push([x(i), y(least)], [x(i + each), y(least)]);
    }
    c.beginPath();
    top.forEach(([px, py], i) => (i === 0 ? c.moveTo(px, py) : c.lineTo(px, py)));
    c.lineTo(top[top.length - 1][0], y(0));
    c.lineTo(top[0][0], y(0));
    c.fill();
    if (each * this.step > 1) {
      // From the least to the most of each column: a line through them all would be a solid area anyway.
      c.fillStyle = theme("--live");
      for (let i = 0; i < top.length; i += 2) {
        const [left, high] = top[i];
        c.fillRect(left, high - 0.75, Math.max(1, top[i + 1][0] - left), bottom[i][1] - high + 1.5);
      }
      return;
    }
    c.beginPath();
    top.forEach(([px, py], i) => (i === 0 ? c.moveTo(px, py) : c.lineTo(px, py)));
    c.stroke();
  }

  paintPeak(c, box, y) {
    if (this.head.peak_at_event === null) return;
    const at = this.chart.xOf(this.head.peak_at_event, this.view);
    if (at < box.left || at > box.right) return;
    c.fillStyle = theme("--picked");
    c.beginPath();
    c.arc(at, y(this.head.stats.live_peak), 4, 0, 2 * Math.PI);
    c.fill();
    c.textAlign = at > box.left + box.width / 2 ? "right" : "left";
    c.textBaseline = "bottom";
    const label = ["peak", at + (c.textAlign === "right" ? -7 : 7), y(this.head.stats.live_peak) - 3];
    c.strokeStyle = theme("--panel"); // so that a line behind it leaves it readable
    c.lineWidth = 4;
    c.strokeText(...label);
    c.fillText(...label);
  }

  // What the lines say at a time, for people.
  describe(time) {
    const point = Math.max(0, Math.min(this.most.length - 1, Math.floor(time / this.step)));
    const live = this.least[point] === this.most[point] ? formatSize(this.most[point])
      : `${formatSize(this.least[point])} to ${formatSize(this.most[point])}`;
    const when = this.time ? `, ${formatMicroseconds(this.time[point])}` : "";
    const parts = [`${this.head.time_unit} ${formatCount(Math.max(0, Math.floor(time)))}${when}: live ${live}`];
    for (const line of this.lines) if (line.shown) parts.push(`${line.short} ${formatSize(line.values[point])}`);
    return parts.join("; ");
  }
}
