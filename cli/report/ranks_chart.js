// The peak of each rank as a bar, what was reserved above it, and the median across.

class RanksChart {
  // ranks: by rank, null where nothing is known of it: {live_peak, reserved_peak, summary}.
  constructor(canvas) {
    this.chart = new Chart(canvas, { left: 78, right: 12, top: 12, bottom: 42 });
    this.chart.paint = (c, box) => this.paint(c, box);
    this.ranks = [];
    this.levels = [];
    this.picked = -1;
    this.onPick = () => {};
    steer(this.chart, () => this.view, { pick: (x, y, step) => this.pick(x, step) });
  }

  show(ranks, levels) {
    this.ranks = ranks;
    this.levels = levels;
    this.highest = 1.06 * Math.max(1, ...levels.map((level) => level.at),
      ranks.reduce((most, rank) => Math.max(most, rank ? Math.max(rank.live_peak, rank.reserved_peak) : 0), 0));
    this.view = new View(ranks.length);
    this.view.listeners.push(() => this.chart.changed());
    this.chart.changed();
  }

  // `step`: one further up or down, without a look at where the pointer is.
  pick(x, step) {
    const rank = step === undefined ? Math.floor(this.chart.timeOf(x, this.view)) : this.picked - step;
    if (rank >= 0 && rank < this.ranks.length) this.onPick(rank);
  }

  paint(c, box) {
    if (!this.view) return;
    this.chart.axes(c, box, this.view, this.highest, "rank", 0.5);
    this.chart.clip(c, box);
    const y = (bytes) => box.bottom - (bytes / this.highest) * box.height;
    const { low, high } = this.view;
    const each = Math.max(1, Math.ceil((high - low) / box.width)); // ranks to a pixel: the most of them
    for (let i = Math.floor(low); i < Math.min(high, this.ranks.length); i += each) {
      const group = this.ranks.slice(i, i + each);
      const left = Math.floor(this.chart.xOf(i, this.view)), right = Math.floor(this.chart.xOf(i + each, this.view));
      const gap = right - left > 5 ? 1 : 0;
      const width = Math.max(1, right - left - gap);
      const most = (name) => group.reduce((sum, rank) => Math.max(sum, rank ? rank[name] : 0), 0);
      if (group.some((rank) => !rank || !rank.summary)) {
        c.fillStyle = theme("--grid");
        c.fillRect(left, box.top, width, box.height);
      }
      c.fillStyle = theme(this.picked >= i && this.picked < i + each ? "--picked" : "--live");
      c.fillRect(left, y(most("live_peak")), width, box.bottom - y(most("live_peak")));
      c.fillStyle = theme("--ink");
      if (most("reserved_peak") > 0) c.fillRect(left, y(most("reserved_peak")) - 1, width, 2);
    }
    c.setLineDash([6, 4]);
    c.lineWidth = 1.5;
    for (const level of this.levels) {
      c.strokeStyle = theme(level.colour);
      c.beginPath();
      c.moveTo(box.left, y(level.at));
      c.lineTo(box.right, y(level.at));
      c.stroke();
    }
    c.restore();
  }
}
