/* A raw scan as the view needs it: surface, texture or vertex colours. */

import { arrays, blob } from "./server.js";

export async function loadScan(state) {
  const path = `api/scans/${state.scan}`, geometry = await arrays("GET", `${path}/geometry`);
  const scan = { key: state.scan, positions: geometry.vertices, faces: geometry.faces, colours: geometry.colors ?? null };
  if (state.texture && geometry.uv) {
    scan.uv = geometry.uv;
    scan.image = await createImageBitmap(await blob(`${path}/texture`), { imageOrientation: "flipY" });
  }
  return scan;
}

/* The registered shape in the coordinates of the raw scan. */
export async function loadResult(key) {
  const found = await arrays("GET", `api/scans/${key}/result`);
  return { positions: found.vertices, faces: found.faces, residual: found.residual };
}
