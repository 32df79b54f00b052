// The span of time that a chart shows, moved by mouse and keyboard.

const LEAST_SPAN = 4; // of time units, as far as one can zoom into more than that

class View {
  constructor(end) {
    this.whole = Math.max(1, end); // whoever has nothing to show divides by it
    this.listeners = [];
    this.reset();
  }
  reset() {
    this.set(0, this.whole);
  }
  set(low, high) {
    const span = Math.min(this.whole, Math.max(LEAST_SPAN, high - low));
    this.low = Math.max(0, Math.min(low, this.whole - span));
    this.high = this.low + span;
    for (const listener of this.listeners) listener();
  }
  zoom(factor, centre) {
    const at = centre === undefined ? (this.low + this.high) / 2 : centre;
    this.set(at - (at - this.low) * factor, at + (this.high - at) * factor);
  }
  pan(share) {
    const by = share * (this.high - this.low);
    this.set(this.low + by, this.high + by);
  }
}

// A canvas with margins for axes, drawn once a frame at most, sharp on every screen.
class Chart {
  constructor(canvas, margins) {
    this.canvas = canvas;
    this.margins = margins;
    this.context = canvas.getContext("2d", { alpha: false });
    this.cursor = null; // x in pixels, or null
    this.brush = null; // [from, to] in pixels while dragging
    new ResizeObserver(() => this.changed()).observe(canvas);
  }
  changed() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }
  draw() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (width === 0 || height === 0) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const c = this.context;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = theme("--panel");
    c.fillRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif";
    const { left, right, top, bottom } = this.margins;
    this.box = { left, top, width: width - left - right, height: height - top - bottom, right: width - right,
      bottom: height - bottom };
    this.paint(c, this.box);
    if (this.brush) {
      const [from, to] = this.brush;
      c.fillStyle = theme("--band");
      c.fillRect(Math.min(from, to), top, Math.abs(to - from), this.box.height);
    }
  }

  // Axes with units: bytes upwards, time to the right. `within`: where in its step a tick stands, 0.5 in the middle of
  // what has a bar of its own.
  axes(c, box, view, highest, timeUnit, within = 0) {
    c.strokeStyle = theme("--grid");
    c.fillStyle = theme("--quiet");
    c.lineWidth = 1;
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const { at, label } of sizeTicks(0, highest, Math.max(2, box.height / 45))) {
      const y = Math.round(box.bottom - (at / highest) * box.height) + 0.5;
      c.beginPath();
      c.moveTo(box.left, y);
      c.lineTo(box.right, y);
      c.stroke();
      c.fillText(label, box.left - 6, y);
    }
    c.textBaseline = "top";
    const ticks = roundTicks(view.low, view.high, Math.max(2, box.width / 110), true);
    let free = -Infinity; // labels end here
    for (const at of ticks) {
      if (at + within > view.high) continue;
      const x = Math.round(box.left + ((at + within - view.low) / (view.high - view.low)) * box.width) + 0.5;
      c.beginPath();
      c.moveTo(x, box.bottom);
      c.lineTo(x, box.bottom + 4);
      c.stroke();
      const label = formatCount(at);
      const half = c.measureText(label).width / 2;
      const centre = Math.max(half, Math.min(x, this.canvas.clientWidth - half));
      if (centre - half < free + 8) continue;
      c.textAlign = "center";
      c.fillText(label, centre, box.bottom + 6);
      free = centre + half;
    }
    c.textAlign = "center";
    c.fillText(timeUnit, box.left + box.width / 2, box.bottom + 22);
  }

  // What is drawn until the next restore() stays within the axes.
  clip(c, box) {
    c.save();
    c.beginPath();
    c.rect(box.left, box.top, box.width, box.height);
    c.clip();
  }

  xOf(time, view) {
    return this.box.left + ((time - view.low) / (view.high - view.low)) * this.box.width;
  }
  timeOf(x, view) {
    return view.low + ((x - this.box.left) / this.box.width) * (view.high - view.low);
  }
}

// Mouse and keyboard on a chart of a view. `pick(x, y)` is called on a click and on Enter, with a step of -1 or 1 too on the
// arrows up and down, `hover(x, y)` on a move.
function steer(chart, viewOf, { pick, hover }) {
  const { canvas } = chart;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let from = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = place(event)[0];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (from !== null && Math.abs(x - from) > 4) chart.brush = [from, x];
    chart.cursor = x;
    if (hover) hover(x, y);
    chart.changed();
  });
  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = place(event);
    if (chart.brush) {
      const view = viewOf();
      const times = chart.brush.map((at) => chart.timeOf(at, view));
      chart.brush = null;
      view.set(Math.min(...times), Math.max(...times));
    } else if (from !== null && pick) {
      pick(x, y);
    }
    from = null;
  });
  canvas.addEventListener("pointerleave", () => {
    chart.cursor = null;
    chart.changed();
  });
  canvas.addEventListener("dblclick", () => viewOf().reset());
  canvas.addEventListener("wheel", (event) => {
    const view = viewOf();
    if (event.ctrlKey || document.activeElement === canvas) {
      event.preventDefault();
      view.zoom(event.deltaY > 0 ? 1.25 : 0.8, chart.timeOf(place(event)[0], view));
    }
  }, { passive: false });
  const middle = () => [chart.cursor ?? chart.box.left + chart.box.width / 2, chart.box.top + chart.box.height / 2];
  const keys = {
    ArrowLeft: () => viewOf().pan(-0.1),
    ArrowRight: () => viewOf().pan(0.1),
    "+": () => viewOf().zoom(0.7),
    "=": () => viewOf().zoom(0.7),
    "-": () => viewOf().zoom(1 / 0.7),
    Home: () => viewOf().set(0, viewOf().high - viewOf().low),
    End: () => viewOf().set(viewOf().whole - (viewOf().high - viewOf().low), viewOf().whole),
    Escape: () => viewOf().reset(),
    Enter: () => pick && pick(...middle()),
    ArrowUp: () => pick && pick(...middle(), -1),
    ArrowDown: () => pick && pick(...middle(), 1),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
}
