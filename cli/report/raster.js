// Rectangles straight into pixels. Blocks never share bytes, so all of them together fill each pixel about once,
// however many they are; a canvas call a block would be several times slower.

class Raster {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d");
  }
  // Clears it to nothing, `width` by `height` pixels.
  begin(width, height) {
    if (this.canvas.width !== width || this.canvas.height !== height || !this.image) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    Object.assign(this, { width, height });
    this.pixels.fill(0);
  }
  // At least one pixel each way; `edge` is the colour of its right and upper side where it is large enough for one.
  rectangle(left, top, right, bottom, colour, edge) {
    const x0 = Math.max(0, Math.round(left)), y0 = Math.max(0, Math.round(top));
    const x1 = Math.min(this.width, Math.max(x0 + 1, Math.round(right)));
    const y1 = Math.min(this.height, Math.max(y0 + 1, Math.round(bottom)));
    const framed = x1 - x0 > 4 && y1 - y0 > 4;
    const { pixels } = this;
    for (let y = y0; y < y1; ++y) {
      const row = y * this.width;
      const paint = framed && y === y0 ? edge : colour;
      if (x1 - x0 > 24) pixels.fill(paint, row + x0, row + x1);
      else for (let at = row + x0; at < row + x1; ++at) pixels[at] = paint; // a call would cost more
      if (framed) pixels[row + x1 - 1] = edge;
    }
  }
  end(c, x, y, width, height) {
    this.context.putImageData(this.image, 0, 0);
    c.drawImage(this.canvas, x, y, width, height);
  }
}

// "#rrggbb" as a pixel; mixed with `other`, of which `share` remains.
function pixel(colour, other = colour, share = 0) {
  const part = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const mix = (at) => Math.round(part(colour, at) * (1 - share) + part(other, at) * share);
  return ((255 << 24) | (mix(5) << 16) | (mix(3) << 8) | mix(1)) >>> 0;
}
