/* Which colours a shape can have, and what they mean. */

import { t, word } from "./language.js";

/* Round up to 1, 2 or 5 times a power of ten: an end of a scale that people can read. */
function niceCeiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map(step => step * power).find(end => end >= value * 0.999);
}

function largest(values) {
  const found = Float32Array.from(values.filter(value => value === value), Math.abs).sort();
  return found.length ? found[Math.floor(0.995 * (found.length - 1))] : 0;
}

function distances(positions, from) {
  const found = new Float32Array(positions.length / 3);
  for (let i = 0, k = 0; i < found.length; i++, k += 3) {
    found[i] = Math.hypot(positions[k] - from[k], positions[k + 1] - from[k + 1], positions[k + 2] - from[k + 2]);
  }
  return found;
}

export const COLOURINGS = {
  plain: { label: word("plain colour") },
  distance: { label: word("distance from the average"), title: word("Distance from the average"), unit: "mm", map: "light", grows: true },
  variation: { label: word("how much people differ"), title: word("Differences between people, sd"), unit: "mm", map: "light" },
  mask: { label: word("breast region (mask)"), title: word("Breast mask (0 to 1)"), unit: "", map: "light", range: [0, 1] },
  residual: { label: word("distance to the scan"), title: word("Shape in front of (+) or behind (\u2212) the scan"), unit: "mm", map: "diverging" },
  difference: { label: word("difference from the other shape"), title: word("In front of (+) or behind (\u2212) the other shape"), unit: "mm", map: "diverging" },
  symmetry: { label: word("left against right"), title: word("Outside (+) or inside (\u2212) the mirror image of the other side"), unit: "mm", map: "diverging",
    plain: value => value !== value },
  thickness: { label: word("what is added or taken away"), title: word("Outside (+) or inside (\u2212) of the skin as it is"), unit: "mm", map: "diverging" },
  moved: { label: word("moved by editing"), title: word("Moved by editing"), unit: "mm", map: "light" },
  uncertainty: { label: word("uncertainty of the prediction"), title: word("Uncertainty (sd); skin colour: as scanned"), unit: "mm", map: "light",
    plain: value => value !== value },
  painted: { label: word("painted region"), title: "", unit: "", map: "light", range: [0, 1.5], plain: value => !value },
};

/* Colours that make sense for a shape: names in COLOURINGS. */
export function offered(shape, model) {
  const names = ["plain"];
  for (const name of ["difference", "symmetry", "thickness", "uncertainty", "residual", "moved", "painted"]) if (shape?.maps?.[name]) names.push(name);
  if (model?.mean && shape?.positions.length === model.mean.length) names.push("distance");
  if (model?.maps?.sd) names.push("variation");
  if (model?.maps?.mask) names.push("mask");
  return names;
}

/* Values and scale, {values, scale, plain}, of a colouring. plain(value) says which vertices keep the skin's
   colour; `ends` keeps the growing ends of scales. */
export function evaluate(name, shape, model, ends) {
  const kind = COLOURINGS[name];
  const values = name === "distance" ? distances(shape.positions, model.mean) : name === "variation" ? model.maps.sd
    : name === "mask" ? model.maps.mask : shape.maps[name];
  let [min, max] = kind.range ?? [0, 0];
  if (!kind.range) {
    max = niceCeiling(Math.max(largest(values), 0.5));
    // The scale of a live slider must not jump about under the user's hand: it only grows.
    if (kind.grows) max = ends[name] = Math.max(max, ends[name] ?? 5);
    min = kind.map === "diverging" ? -max : 0;
  }
  return { values, scale: { label: t(kind.title), unit: kind.unit, min, max, map: kind.map }, plain: kind.plain };
}
