/* What lies over the 3D picture as text: the patient's sides, names of markers, the colour bar. */
"use strict";

const BreastOverlay = (() => {
  // What is written into the picture; a page in another language puts its own words here.
  const words = { left: "Patient's left", right: "Patient's right", fromLeft: "Seen from patient's left", fromRight: "Seen from patient's right", point: ".",
    keys: "Arrow keys turn it, with Shift they move it, plus and minus zoom, Home shows the front.",
    noPicture: "The 3D view needs WebGL, which this browser does not offer or has switched off. Everything else on the page works." };
  const LINE = 18;  // px from one name to the next below it

  const smooth = (from, to, value) => {
    const t = Math.min(Math.max((value - from) / (to - from), 0), 1);
    return t * t * (3 - 2 * t);
  };

  function part(parent, name, text = "") {
    const element = document.createElement("div");
    element.className = name;
    element.textContent = text;
    parent.append(element);
    return element;
  }

  /* Lines of a text, broken between words so that none is wider than `width`. */
  function wrap(context, text, width) {
    const lines = [];
    for (const word of text.split(" ")) {
      const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  }

  /* The height nearest to where a name belongs at which it covers none of those placed: {x, y, width}. */
  function freeHeight({ x, y, width }, placed) {
    const near = placed.filter(other => x < other.x + other.width + 4 && other.x < x + width + 4);
    const free = height => near.every(other => Math.abs(height - other.y) >= LINE);
    const tried = [y, ...near.flatMap(other => [other.y + LINE, other.y - LINE])];
    return tried.filter(free).sort((a, b) => Math.abs(a - y) - Math.abs(b - y))[0] ?? y;
  }

  /* What stands at the edges of the picture.

     `across` is the part of the patient's left that points to the right of the screen, `toward` the part that
     points to the viewer, both -1 to 1. Seen from the side, the word in the middle says which side it is. */
  function sides(across, toward) {
    const ends = across >= 0 ? [words.right, words.left] : [words.left, words.right];
    const shown = smooth(0.15, 0.5, Math.abs(across));
    const seen = toward >= 0 ? words.fromLeft : words.fromRight;
    const middleShown = 1 - smooth(0.1, 0.3, Math.abs(across));
    return { left: ends[0], right: ends[1], shown, middle: seen, middleShown };
  }

  class Overlay {
    constructor(container) {
      this.root = part(container, "bv-overlay");
      this.left = part(this.root, "bv-side bv-side-left");
      this.right = part(this.root, "bv-side bv-side-right");
      this.middle = part(this.root, "bv-side bv-side-middle");
      this.names = part(this.root, "bv-names");
      this.bar = part(this.root, "bv-bar");
      this.bar.hidden = true;
      this.state = sides(1, 0);
      this.scale = null;
    }

    showSides(across, toward) {
      const state = this.state = sides(across, toward);
      this.left.textContent = state.left;
      this.right.textContent = state.right;
      this.middle.textContent = state.middle;
      this.left.style.opacity = this.right.style.opacity = state.shown.toFixed(3);
      this.middle.style.opacity = state.middleShown.toFixed(3);
    }

    /* {label, unit, min, max, map}, or null to take it away. */
    showBar(scale) {
      this.scale = scale;
      this.bar.hidden = !scale;
      this.bar.replaceChildren();
      if (!scale) return;
      part(this.bar, "bv-bar-title", Overlay.title(scale));
      const body = part(this.bar, "bv-bar-body");
      part(body, "bv-bar-colours").style.background = BreastColours.gradient(scale.map);
      const ticks = part(body, "bv-bar-ticks");
      for (const text of Overlay.ticks(scale)) part(ticks, "bv-bar-tick", text);
    }

    static title({ label, unit }) { return unit ? `${label} (${unit})` : label; }

    /* Texts of the ticks, highest first; three digits of the range. */
    static ticks({ min, max }) {
      const shown = Math.min(Math.max(2 - Math.floor(Math.log10(Math.max(Math.abs(max - min), 1e-9))), 0), 4);
      const texts = [1, 0.75, 0.5, 0.25, 0].map(t => (min + t * (max - min)).toFixed(shown));
      return texts.map(text => text.replace(/^-(0\.?0*)$/, "$1").replace("-", "−").replace(".", words.point));
    }

    /* Names of the markers of setMarkers. */
    nameMarkers(markers) {
      this.names.replaceChildren();
      for (const marker of markers) {
        marker.element = part(this.names, marker.active ? "bv-name bv-name-active" : "bv-name", marker.label);
        marker.element.dataset.marker = marker.name ?? "";
        marker.width = marker.element.offsetWidth;
        // Style sheets may put a name beside, above or below its marker.
        const box = marker.element.getBoundingClientRect(), home = this.root.getBoundingClientRect();
        marker.beside = [box.left - home.left, box.top - home.top];
      }
    }

    placeMarkers(markers, camera) {
      const wide = this.root.clientWidth / 2, high = this.root.clientHeight / 2, at = new THREE.Vector3();
      const placed = [];
      // The active name keeps its place; the others give way.
      for (const { element, label, position, width, beside: [dx, dy] } of [...markers].sort((a, b) => b.active - a.active)) {
        at.fromArray(position).project(camera);
        element.hidden = !label || Math.abs(at.z) > 1;
        if (element.hidden) continue;
        let x = (1 + at.x) * wide;
        if (x + width + 12 > 2 * wide) x -= width + 18;  // on the other side of its marker, not cut off
        x = Math.max(x, 2 - dx);
        const spot = { x: x + dx, y: (1 - at.y) * high + dy, width };
        spot.y = freeHeight(spot, placed);
        placed.push(spot);
        element.style.transform = `translate(${x.toFixed(1)}px, ${(spot.y - dy).toFixed(1)}px)`;
      }
    }

    fade(marker, behind) { marker.element.classList.toggle("bv-name-behind", behind); }

    /* Draw the overlay into a picture of the view, `scale` pixels a CSS pixel. */
    draw(context, scale) {
      const box = this.root.getBoundingClientRect();
      context.textBaseline = "middle";
      const write = (element, shown) => {
        if (!(shown > 0.05) || !element.textContent) return;
        const place = element.getBoundingClientRect(), style = getComputedStyle(element);
        const high = parseFloat(style.lineHeight) * scale;
        context.font = `${style.fontWeight} ${parseFloat(style.fontSize) * scale}px ${style.fontFamily}`;
        const lines = wrap(context, element.textContent, (place.width + 1) * scale);
        const x = (place.left - box.left + parseFloat(style.paddingLeft)) * scale;
        const y = (place.top - box.top + place.height / 2) * scale - (lines.length - 1) / 2 * high;
        context.globalAlpha = shown;
        context.lineWidth = 4 * scale;
        context.lineJoin = "round";
        context.strokeStyle = style.getPropertyValue("--bv-halo") || "#fff";
        context.fillStyle = style.color;
        lines.forEach((line, i) => {
          context.strokeText(line, x, y + i * high);
          context.fillText(line, x, y + i * high);
        });
        context.globalAlpha = 1;
      };
      write(this.left, this.state.shown);
      write(this.right, this.state.shown);
      write(this.middle, this.state.middleShown);
      for (const name of this.names.children) {
        write(name, name.hidden ? 0 : name.classList.contains("bv-name-behind") ? 0.3 : 1);
      }
      if (!this.scale) return;
      const place = this.bar.querySelector(".bv-bar-colours").getBoundingClientRect();
      const [x, y, wide, high] = [place.left - box.left, place.top - box.top, place.width, place.height]
        .map(length => length * scale);
      const colours = BreastColours.table(this.scale.map);
      for (let i = 0; i < 256; i++) {
        context.fillStyle = `rgb(${colours.slice(3 * i, 3 * i + 3).join(",")})`;
        context.fillRect(x, y + high * (255 - i) / 256, wide, high / 256 + 1);
      }
      write(this.bar.querySelector(".bv-bar-title"), 1);
      this.bar.querySelectorAll(".bv-bar-tick").forEach(tick => write(tick, 1));
    }
  }

  /* A text in a box at the upper left of a picture, `scale` pixels a CSS pixel. */
  function stamp(context, text, scale) {
    context.font = `600 ${15 * scale}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.fillStyle = "#ffe8cc";
    context.fillRect(8 * scale, 8 * scale, context.measureText(text).width + 20 * scale, 28 * scale);
    context.fillStyle = "#5c2b00";
    context.fillText(text, 18 * scale, 22 * scale);
  }

  return { Overlay, stamp, words };
})();
