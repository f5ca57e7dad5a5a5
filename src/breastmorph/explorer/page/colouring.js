/* Which colours a shape can have, and what they mean. */

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
  plain: { label: "plain colour" },
  distance: { label: "distance from the average", title: "Distance from the average", unit: "mm", map: "light", grows: true },
  variation: { label: "how much people differ", title: "Differences between people, sd", unit: "mm", map: "light" },
  mask: { label: "breast region (mask)", title: "Breast mask (0 to 1)", unit: "", map: "light", range: [0, 1] },
  residual: { label: "distance to the scan", title: "Shape in front of (+) or behind (\u2212) the scan", unit: "mm", map: "diverging" },
  moved: { label: "moved by editing", title: "Moved by editing", unit: "mm", map: "light" },
  uncertainty: { label: "uncertainty of the prediction", title: "Uncertainty (sd); skin colour: as scanned", unit: "mm", map: "light",
    plain: value => value !== value },
  painted: { label: "painted region", title: "", unit: "", map: "light", range: [0, 1.5], plain: value => !value },
};

/* Colours that make sense for a shape: names in COLOURINGS. */
export function offered(shape, model) {
  const names = ["plain"];
  for (const name of ["uncertainty", "residual", "moved", "painted"]) if (shape?.maps?.[name]) names.push(name);
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
  return { values, scale: { label: kind.title, unit: kind.unit, min, max, map: kind.map }, plain: kind.plain };
}
