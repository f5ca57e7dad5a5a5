/* A brush on the shown shape: which vertices are painted. */

export class Brush {
  /* `onPaint(count)` hears how many vertices are painted, `onStroke()` of the end of a stroke. */
  constructor(stage, onPaint, onStroke) {
    this.stage = stage;
    this.onPaint = onPaint;
    this.onStroke = onStroke;
    this.painted = null;   // 0 or 1 for every vertex
    this.mode = "off";     // or "paint", "erase", "turn"
    this.radius = 25;      // mm
    const canvas = stage.view.canvas;
    if (!canvas) return;
    let down = false;
    canvas.addEventListener("pointerdown", event => {
      down = (this.mode === "paint" || this.mode === "erase") && event.isPrimary && event.button === 0;
      if (down) { canvas.setPointerCapture(event.pointerId); this._dab(event); }
    });
    canvas.addEventListener("pointermove", event => { if (down) this._dab(event); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { if (down) this.onStroke(); down = false; });
  }

  setMode(mode) {
    this.mode = mode;
    this.stage.view.setNavigation(mode === "off" || mode === "turn");
    this.stage.view.container.classList.toggle("painting", mode === "paint" || mode === "erase");
  }

  clear(count) {
    this.painted = new Float32Array(count);
    this.onPaint(0);
  }

  /* What is painted as a short text, a bit a vertex; empty where nothing is. */
  saved() {
    if (!this.painted?.some(value => value)) return "";
    const bytes = new Uint8Array(Math.ceil(this.painted.length / 8));
    this.painted.forEach((value, i) => { if (value) bytes[i >> 3] |= 1 << (i & 7); });
    return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(""));
  }

  load(text, count) {
    const bytes = atob(text);
    this.painted = Float32Array.from({ length: count }, (_, i) => (bytes.charCodeAt(i >> 3) >> (i & 7)) & 1);
    this.onPaint(this.ids().length);
  }

  ids() { return this.painted ? [...this.painted.keys()].filter(i => this.painted[i]) : []; }

  _dab(event) {
    const hit = this.stage.view.pick(event.clientX, event.clientY);
    if (!hit || hit.mesh !== "shape") return;
    const { positions } = this.stage.shape, [x, y, z] = hit.point, reach = this.radius ** 2, value = this.mode === "paint" ? 1 : 0;
    let count = 0;
    for (let i = 0, k = 0; i < this.painted.length; i++, k += 3) {
      if ((positions[k] - x) ** 2 + (positions[k + 1] - y) ** 2 + (positions[k + 2] - z) ** 2 < reach) this.painted[i] = value;
      count += this.painted[i];
    }
    this.stage.paint();
    this.onPaint(count);
  }
}
