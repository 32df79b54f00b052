// Colours of blocks. Sites and streams: the largest get a hue of their own, the others one grey, and the legend says
// so. Sizes and lifetimes: one scale, by powers of two.

const HUES = [
  "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7", "#9c755f", "#86bcb6",
  "#d37295", "#8cd17d",
];
const SCALE = [
  "#7b3fa0", "#6247aa", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6dcd59", "#b4de2c", "#fde725",
];

function theme(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The most frequent `keys` by weight, as many as there are hues.
function largest(keys, weights) {
  const sums = new Map();
  for (let i = 0; i < keys.length; ++i) sums.set(keys[i], (sums.get(keys[i]) || 0) + weights[i]);
  return [...sums].sort((a, b) => b[1] - a[1]).map(([key]) => key);
}

// {of: colour index by block, colours, legend: [{colour, label}]} for `blocks` coloured `by`.
function colouring(by, blocks, kinds, sites, streams, unit) {
  return by === "site" || by === "stream"
    ? byName(by, blocks, kinds, sites, streams)
    : byAmount(by, blocks, kinds, unit);
}

function byName(by, blocks, kinds, sites, streams) {
  const keyOfKind = Array.from(kinds.stack, (stack, i) => (by === "site" ? sites.siteOf(stack) : kinds.stream[i]));
  const keys = new Uint32Array(blocks.count), weights = new Float64Array(blocks.count);
  for (let i = 0; i < blocks.count; ++i) {
    keys[i] = keyOfKind[blocks.kind[i]];
    weights[i] = kinds.bytes[blocks.kind[i]] * (blocks.end[i] - blocks.start[i]);
  }
  const order = largest(keys, weights);
  const rank = new Map(order.map((key, i) => [key, Math.min(i, HUES.length)]));
  const of = Uint8Array.from(keys, (key) => rank.get(key));
  const label = (key) => (by === "stream" ? `stream ${streams[key]}` : sites.known ? sites.labels[key] : "no stacks recorded");
  const legend = order.slice(0, HUES.length).map((key, i) => ({ colour: HUES[i], label: label(key) }));
  const others = order.length - legend.length;
  if (others > 0) legend.push({ colour: theme("--other"), label: plural(others, `other ${by}`) });
  return { of, colours: [...HUES, theme("--other")], legend };
}

function byAmount(by, blocks, kinds, unit) {
  const amount = (i) => (by === "size" ? kinds.bytes[blocks.kind[i]] : blocks.end[i] - blocks.start[i]);
  let low = Infinity, high = 0;
  for (let i = 0; i < blocks.count; ++i) {
    const log = Math.log2(Math.max(1, amount(i)));
    low = Math.min(low, log);
    high = Math.max(high, log);
  }
  const span = Math.max(high - low, 1e-9);
  const of = new Uint8Array(blocks.count);
  for (let i = 0; i < blocks.count; ++i) {
    of[i] = Math.min(SCALE.length - 1, Math.floor(((Math.log2(Math.max(1, amount(i))) - low) / span) * SCALE.length));
  }
  const text = (log) => (by === "size" ? formatSize(2 ** log) : plural(Math.round(2 ** log), unit));
  const legend = SCALE.map((colour, i) => ({ colour, label: "", from: low + (span * i) / SCALE.length }));
  for (const i of [0, 3, 6, 9]) legend[i].label = `from ${text(legend[i].from)}`;
  return { of, colours: SCALE, legend: legend.filter((entry) => entry.label) };
}
