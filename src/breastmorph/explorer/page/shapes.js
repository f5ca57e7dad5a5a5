/* Shapes with the model's triangles: from the sliders in the browser, or from the server. */

import { t } from "./language.js";
import { arrays } from "./server.js";

const LABELS = {
  mean: t("average shape"), model: t("shape of the sliders"), patient: t("patient"), edit: t("edited shape"),
  prediction: t("predicted breast"), alternative: t("plausible alternative"), mirrored: t("mirror image"), kept: t("kept shape"),
};

export const labelOf = spec => spec.kind === "model" && spec.scores.every(score => score === 0) ? LABELS.mean : LABELS[spec.kind];

/* What the sliders need of the model: {mean, faces, modes, count}; its maps come later with `loadMaps`. */
export async function loadModel() {
  const { mean, faces, modes } = await arrays("GET", "api/model/geometry");
  return { mean, faces, modes, maps: null, count: modes.length / mean.length };
}

export const loadMaps = () => arrays("GET", "api/model/maps");

/* Vertices of mean + sum of scores x modes, written into `into`. */
export function morph(model, scores, into = new Float32Array(model.mean.length)) {
  const { mean, modes } = model, n = mean.length;
  into.set(mean);
  scores.forEach((score, k) => {
    if (!score) return;
    const mode = modes.subarray(k * n, (k + 1) * n);
    for (let i = 0; i < n; i++) into[i] += score * mode[i];
  });
  return into;
}

/* A shape of the server with the maps that belong to it. */
export async function fetchShape(spec) {
  const found = await arrays("POST", "api/shape", { shape: spec }), maps = {};
  if (found.residual) maps.residual = found.residual;
  if (found.moved) maps.moved = found.moved;
  if (found.sd) maps.uncertainty = found.missing ? found.sd.map((value, i) => found.missing[i] ? value : NaN) : found.sd;
  return { spec, label: labelOf(spec), positions: found.vertices, maps, skin: found.colors ?? null };
}
