/* Colour maps and what is coloured with them. Colours are sRGB, 0 to 255. */
"use strict";

const BreastColours = (() => {
  // 17 colours a map, evenly spaced; between them the colour is interpolated.
  const tables = {
    viridis: "44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219fde725",
    light: "ffffd9f6fbc5edf8b1daf0b3c6e9b4a2dbb87ecdbb5fc1c040b5c42ea3c21d90c02076b3225da824489d243392162874081d58",
    diverging: "3b4cc04e68d86282ea779af78db0fea3c2feb9d0f9ccd9eddddcdcecd3c5f5c4acf7b093f4987aeb7d62dd5f4bca3b37b40426",
  };
  const missing = [150, 150, 150];  // of a value that is not a number
  const fine = {};

  /* 256 colours of a map, as one Uint8Array. */
  function table(name) {
    if (!fine[name]) {
      const text = tables[name];
      if (!text) throw new Error(`there is no colour map ${name}; there are: ${Object.keys(tables).join(", ")}`);
      const coarse = Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
      const last = coarse.length / 3 - 1, colours = new Uint8Array(768);
      for (let i = 0; i < 256; i++) {
        const at = i / 255 * last, low = Math.min(Math.floor(at), last - 1), part = at - low;
        for (let c = 0; c < 3; c++) {
          colours[3 * i + c] = Math.round((1 - part) * coarse[3 * low + c] + part * coarse[3 * low + 3 + c]);
        }
      }
      fine[name] = colours;
    }
    return fine[name];
  }

  /* Colours of values: Uint8Array of 3 n. Values outside the range get the end colours. */
  function colour(values, { min = 0, max = 1, map = "viridis" } = {}) {
    const colours = table(map), scale = 255 / ((max - min) || 1), found = new Uint8Array(3 * values.length);
    for (let i = 0; i < values.length; i++) {
      const at = (values[i] - min) * scale;
      if (at !== at) { found.set(missing, 3 * i); continue; }
      const from = 3 * (at <= 0 ? 0 : at >= 255 ? 255 : (at + 0.5) | 0);
      found[3 * i] = colours[from]; found[3 * i + 1] = colours[from + 1]; found[3 * i + 2] = colours[from + 2];
    }
    return found;
  }

  /* A CSS gradient of a map from bottom to top, for a colour bar. */
  function gradient(map) {
    const colours = table(map);
    const stops = Array.from({ length: 18 }, (_, i) => `rgb(${colours.slice(45 * i, 45 * i + 3).join(",")})`);
    return `linear-gradient(to top, ${stops.join(", ")})`;
  }

  return { colour, gradient, table };
})();
