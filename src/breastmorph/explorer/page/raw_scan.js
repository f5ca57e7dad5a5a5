/* A raw scan as the view needs it: surface, texture or vertex colours. */

import { arrays, blob } from "./server.js";

/* A picture for the skin; null where the browser cannot read it. */
async function picture(path) {
  const content = await blob(path);
  return createImageBitmap(content, { imageOrientation: "flipY" }).catch(() => null);
}

const KEPT = 3, scenes = new Map();  // the last ones by key: one goes back and forth between visits

export async function loadScan(state) {
  const known = scenes.get(state.scan);
  scenes.delete(state.scan);
  const scan = known ?? await fetchScan(state);
  scenes.set(state.scan, scan);
  for (const key of [...scenes.keys()].slice(0, -KEPT)) scenes.delete(key);
  return scan;
}

/* A scan that was closed: nothing of it stays in the browser. */
export function dropScans(open) { for (const key of scenes.keys()) if (!open.includes(key)) scenes.delete(key); }

async function fetchScan(state) {
  const path = `api/scans/${state.scan}`, geometry = await arrays("GET", `${path}/geometry`);
  const scan = { key: state.scan, positions: geometry.vertices, faces: geometry.faces, colours: geometry.colors ?? null };
  if (state.texture && geometry.uv) {
    scan.uv = geometry.uv;
    scan.image = await picture(`${path}/texture`);
  }
  return scan;
}

/* The registered shape in the coordinates of the raw scan. */
export async function loadResult(key) {
  const found = await arrays("GET", `api/scans/${key}/result`);
  return { positions: found.vertices, faces: found.faces, residual: found.residual };
}
