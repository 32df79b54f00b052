// The peak's bytes by stack, outermost frame at the bottom. A row is a depth, a width is bytes.

const FLAME_ROW = 19, FLAME_LEAST = 0.5; // pixels

function flameTree(peakStacks, sites) {
  const root = { name: "live at the peak", bytes: 0, blocks: 0, children: new Map(), depth: 0, python: true };
  let deepest = 0;
  for (const [stack, bytes, blocks] of peakStacks) {
    const ids = sites.stacks[stack] || [];
    let node = root;
    root.bytes += bytes;
    root.blocks += blocks;
    if (ids.length === 0) {
      const unknown = { name: "no stack recorded", bytes, blocks, children: new Map(), depth: 1, parent: root };
      root.children.set(0, unknown);
    }
    for (let i = ids.length - 1; i >= 0; --i) {
      let child = node.children.get(ids[i]);
      if (!child) {
        const frame = sites.frame(ids[i]);
        child = { name: frame.name, text: frame.text, python: frame.python, bytes: 0, blocks: 0, children: new Map(),
          depth: node.depth + 1, parent: node };
        node.children.set(ids[i], child);
        deepest = Math.max(deepest, child.depth);
      }
      child.bytes += bytes;
      child.blocks += blocks;
      node = child;
    }
  }
  root.deepest = deepest;
  return root;
}

class Flame {
  constructor(canvas, text, root) {
    Object.assign(this, { canvas, text, root, top: root, picked: root, boxes: [] });
    this.chart = new Chart(canvas, { left: 0, right: 0, top: 0, bottom: 0 });
    this.chart.paint = (c, box) => this.paint(c, box);
    canvas.style.height = `${FLAME_ROW * Math.min(45, root.deepest + 1) + 2}px`;
    canvas.addEventListener("pointermove", (event) => this.describe(this.at(event) || this.picked));
    canvas.addEventListener("click", (event) => this.choose(this.at(event) || this.root));
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.describe(root);
  }
  at(event) {
    const place = this.canvas.getBoundingClientRect();
    const x = event.clientX - place.left, y = event.clientY - place.top;
    return this.boxes.find((b) => x >= b.x && x < b.x + b.width && y >= b.y && y < b.y + FLAME_ROW)?.node;
  }
  choose(node) {
    this.picked = this.top = node;
    this.describe(node);
    this.chart.changed();
  }
  // Arrows walk the tree, Enter zooms, Escape shows all.
  key(event) {
    const order = (node) => [...node.children.values()].sort((a, b) => b.bytes - a.bytes);
    const beside = (step) => {
      if (!this.picked.parent || this.picked === this.top) return this.picked;
      const row = order(this.picked.parent);
      return row[Math.max(0, Math.min(row.length - 1, row.indexOf(this.picked) + step))];
    };
    const moves = {
      ArrowUp: () => order(this.picked)[0] || this.picked,
      ArrowDown: () => (this.picked === this.top ? this.picked : this.picked.parent),
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Enter: () => this.choose(this.picked),
      Escape: () => this.choose(this.root),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const to = moves[event.key]();
    if (to) this.picked = to;
    this.describe(this.picked);
    this.chart.changed();
  }
  describe(node) {
    const share = formatShare(node.bytes / Math.max(1, this.root.bytes));
    const more = this.rowsLeft > 0 ? ` ${plural(this.rowsLeft, "deeper row")} not drawn: click or press Enter to zoom in.` : "";
    const thin = this.thin > 0 ? ` ${plural(this.thin, "frame")} thinner than half a pixel not drawn.` : "";
    this.text.textContent =
      `${node.text || node.name}: ${formatSize(node.bytes)}, ${share} of the peak, ${plural(node.blocks, "block")}.${more}${thin}`;
  }
  paint(c, box) {
    this.boxes = [];
    this.thin = 0;
    this.rowsLeft = 0;
    const rows = Math.floor(box.height / FLAME_ROW);
    const lowest = this.top.depth;
    // Without recursion: a snapshot's stacks may be deeper than the browser's own.
    const pending = [{ node: this.top, x: box.left, width: box.width }];
    while (pending.length > 0) {
      let { node, x, width } = pending.pop();
      const row = node.depth - lowest;
      if (width < FLAME_LEAST) {
        ++this.thin;
        continue;
      }
      if (row >= rows) {
        this.rowsLeft = Math.max(this.rowsLeft, row - rows + 1);
      } else {
        this.boxes.push({ node, x, y: box.bottom - (row + 1) * FLAME_ROW, width });
      }
      for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
        const part = (child.bytes / node.bytes) * width;
        pending.push({ node: child, x, width: part });
        x += part;
      }
    }
    c.textAlign = "left";
    c.textBaseline = "middle";
    for (const b of this.boxes) this.paintBox(c, b);
  }
  paintBox(c, { node, x, y, width }) {
    c.fillStyle = node.depth === 0 ? theme("--other") : node.python ? HUES[hash(node.name) % HUES.length] : theme("--grid");
    c.fillRect(x, y + 1, Math.max(width - 1, 0.5), FLAME_ROW - 1);
    if (node === this.picked) {
      c.strokeStyle = theme("--picked");
      c.lineWidth = 2;
      c.strokeRect(x + 1, y + 2, Math.max(1, width - 3), FLAME_ROW - 3);
    }
    if (width < 40) return;
    c.fillStyle = node.depth > 0 && node.python ? "#111" : theme("--ink");
    c.fillText(fitted(c, node.name, width - 8), x + 4, y + FLAME_ROW / 2 + 1);
  }
}

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

// The longest beginning of `text` that fits, cut with dots.
function fitted(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? `${text.slice(0, low)}…` : "";
}
