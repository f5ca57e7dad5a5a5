/* A plain drawing of the torso that shows where a landmark lies. The patient's left is on the right of the picture. */

import { t } from "./language.js";

const SPACE = "http://www.w3.org/2000/svg";

const MIDDLE = { sternal_notch: [110, 40], xiphoid: [110, 121], navel: [110, 172] };
const LEFT = {  // of the patient; the right side is its mirror image
  nipple: [147, 108], lower_pole: [146, 127], lateral_pole: [173, 108], coracoid: [160, 50], imf: [145, 134],
};

function place(name) {
  if (MIDDLE[name]) return MIDDLE[name];
  const side = name.endsWith("_right") ? "right" : "left", spot = LEFT[name.slice(0, name.lastIndexOf("_"))];
  return spot && (side === "left" ? spot : [220 - spot[0], spot[1]]);
}

function draw(parent, tag, attributes, text) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}

/* The drawing with one landmark marked and those already set as small dots. */
export function sketch(active, done, words) {
  const svg = document.createElementNS(SPACE, "svg");
  svg.setAttribute("viewBox", "0 0 220 200");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", active ? t`Drawing: where to find the point: ${words}` : t("Drawing of the torso; all points are set"));
  const half = (turn, parent) => {
    const side = draw(parent, "g", turn ? { transform: "translate(220 0) scale(-1 1)" } : {});
    draw(side, "path", { class: "outline", d: "M124 4 C124 18 125 24 130 29 C142 38 162 38 180 44 C196 50 202 64 204 84 L210 130" });
    draw(side, "path", { class: "outline", d: "M182 82 C180 96 178 106 177 116 C174 138 168 152 169 172 L172 190" });
    draw(side, "path", { class: "fine", d: "M114 43 C128 39 146 42 166 46" });
    draw(side, "path", { class: "breast", d: "M122 88 C116 104 122 127 146 127 C168 127 179 108 173 88" });
    draw(side, "circle", { class: "breast", cx: 147, cy: 108, r: 4 });
  };
  half(false, svg);
  half(true, svg);
  draw(svg, "path", { class: "fine", d: "M110 46 L110 117" });
  draw(svg, "circle", { class: "fine", cx: 110, cy: 172, r: 2 });
  for (const name of done) {
    const spot = place(name);
    if (spot && name !== active) draw(svg, "circle", { class: "done", cx: spot[0], cy: spot[1], r: 3.2 });
  }
  const spot = active && place(active);
  if (spot) {
    draw(svg, "circle", { class: "ring", cx: spot[0], cy: spot[1], r: 11 });
    draw(svg, "circle", { class: "target", cx: spot[0], cy: spot[1], r: 4.2 });
  }
  draw(svg, "text", { x: 2, y: 198 }, "R");
  draw(svg, "text", { x: 218, y: 198, "text-anchor": "end" }, "L");
  return svg;
}
