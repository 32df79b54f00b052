// Numbers for people, and ticks for axes.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"]; // the last as the command's

const READS_AS_1024 = 1024 - 0.005; // to two places

function unitOf(bytes) {
  let unit = 0;
  for (let rest = Math.abs(bytes); rest >= READS_AS_1024 && unit < UNITS.length - 1; rest /= 1024) ++unit;
  return unit;
}

// To two places, and of two that are as near the even one, as the command does it: sizes are often so many eighths of a
// unit. toFixed takes the larger.
function twoPlaces(value) {
  if (Math.abs((value * 8) % 2) !== 1) return value.toFixed(2);
  const below = Math.floor(value * 100);
  return ((below % 2 === 0 ? below : below + 1) / 100).toFixed(2);
}

// As the command prints it.
function formatSize(bytes) {
  const unit = unitOf(bytes);
  return unit === 0 ? `${Math.round(bytes)} B` : `${twoPlaces(bytes / 1024 ** unit)} ${UNITS[unit]}`;
}

function formatCount(count) {
  return Math.round(count).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

function formatShare(share) {
  return `${twoPlaces(100 * share)} %`;
}

function formatMicroseconds(us) {
  if (us < 1000) return `${us} µs`;
  return us < 1e6 ? `${(us / 1000).toFixed(2)} ms` : `${(us / 1e6).toFixed(3)} s`;
}

// At most `most` round numbers within [low, high]: 1, 2 or 5 times a power of ten.
function roundTicks(low, high, most, whole) {
  const raw = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, Number.MIN_VALUE)));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw) || raw;
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high && ticks.length < 100; ++i) ticks.push(i * step);
  return ticks;
}

// Ticks of an axis of bytes, all in the unit of its top: {at, label}.
function sizeTicks(low, high, most) {
  const unit = unitOf(high);
  const scale = 1024 ** unit;
  const ticks = roundTicks(low / scale, high / scale, most, false);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
  return ticks.map((tick) => ({ at: tick * scale, label: `${tick.toFixed(digits)} ${UNITS[unit]}` }));
}

function plural(count, word) {
  return `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;
}

// What a plan is of.
function roundsOf(plan) {
  return plan.rounds === 1 ? "one iteration" : plural(plan.rounds, "iteration");
}
