// What the page was given: the head as JSON, and the columns behind it.

const NOWHERE = 0xffffffff;

function readHead() {
  return JSON.parse(document.getElementById("head").textContent);
}

async function inflate(base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

async function readData() {
  const element = document.getElementById("data");
  const buffer = await inflate(element.textContent);
  element.remove();
  const length = new DataView(buffer).getUint32(0, true);
  const { columns, sites } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const first = Math.ceil((4 + length) / 8) * 8;
  const column = (name) => {
    const { type, at, count } = columns[name];
    return type === "u32" ? new Uint32Array(buffer, first + at, count) : new Float64Array(buffer, first + at, count);
  };
  return { column, sites };
}

// Blocks as columns of one length: start, end, kind; offsets come with a layout. `start` is stored as differences
// where `stepped`.
function blocksFrom(start, length, kind, stepped) {
  const count = start.length;
  const begins = new Uint32Array(count), ends = new Uint32Array(count);
  let at = 0;
  for (let i = 0; i < count; ++i) {
    at = stepped ? at + start[i] : start[i];
    begins[i] = at;
    ends[i] = at + length[i];
  }
  return { count, start: begins, end: ends, kind };
}

// The offsets of a layout in bytes; -1 where its allocator had no place.
function offsetsFrom(column, unit) {
  const offsets = new Float64Array(column.length);
  for (let i = 0; i < column.length; ++i) offsets[i] = column[i] === NOWHERE ? -1 : column[i] * unit;
  return offsets;
}

class Sites {
  constructor(sites) {
    this.labels = sites.labels;
    this.siteOfStack = sites.site_of_stack;
    this.stacks = sites.stacks;
    this.rawFrames = sites.frames;
  }
  get known() {
    return this.labels.length > 0;
  }
  siteOf(stack) {
    return this.siteOfStack.length > stack ? this.siteOfStack[stack] : 0;
  }
  labelOf(stack) {
    return this.known ? this.labels[this.siteOf(stack)] : "(no stacks recorded)";
  }
  // Innermost first: {python, text}.
  framesOf(stack) {
    return (this.stacks[stack] || []).map((id) => this.frame(id));
  }
  frame(id) {
    const [kind, name, file, line, module] = this.rawFrames[id - 1];
    const where = file ? `${file}${line ? `:${line}` : ""}` : module;
    return { python: kind === 1, name: name || where || "?", text: [name, where].filter(Boolean).join("  ") };
  }
}
