/* What stands in the 3D view: one shape, two shapes to compare, or a raw scan with its landmarks. */

import { t } from "./language.js";
import { evaluate, offered } from "./colouring.js";
import { fetchShape } from "./shapes.js";

const SKIN = "#d8bfae", SKIN_RGB = [0xd8, 0xbf, 0xae], KEPT = "#8fa9c4";
const BLINK = 900;  // ms that each of two shapes is shown
const TURNS = {  // a quarter turn about an axis, row by row
  x: [1, 0, 0, 0, 0, -1, 0, 1, 0], y: [0, 0, 1, 0, 1, 0, -1, 0, 0], z: [0, -1, 0, 1, 0, 0, 0, 0, 1],
};

const apply = (m, [x, y, z]) => [m[0] * x + m[1] * y + m[2] * z, m[3] * x + m[4] * y + m[5] * z, m[6] * x + m[7] * y + m[8] * z];
const transposed = m => [m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]];
const product = (a, b) => [0, 1, 2].flatMap(r => [0, 1, 2].map(c => a[3 * r] * b[c] + a[3 * r + 1] * b[3 + c] + a[3 * r + 2] * b[6 + c]));
const IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0, 1];

export class Stage extends EventTarget {
  constructor(element, captions) {
    super();
    this.view = new BreastView(element, { label: t("Torso in 3D"), onClick: event => this.onClick?.(event) });
    this.captions = captions;
    this.model = null;      // {faces, mean, modes, maps}
    this.shape = null;      // {spec, label, positions, maps}
    this.kept = null;
    this.keptLabels = {};   // by token
    this.layout = "single";
    this.colouring = "plain";
    this.ends = {};
    this.scan = null;       // {key, positions, faces, turn, result}
    this.showing = "shape"; // or "scan"
    this.scanParts = "scan";
    this.markers = [];
    this._right = [1, 0, 0];
    this.ownSkin = true;
    this.splitAt = 0.5;
    this.bodyLines = [];
    this._blinking = 0;
    this._turns = {};       // of scans by key, as they were turned
    this.view.onFrame = () => this._afterFrame();
  }

  _changed() {
    this.view.container.classList.toggle("result", this.showing === "scan" && Boolean(this.scan?.result) && this.scanParts !== "scan");
    this.dispatchEvent(new Event("change"));
  }

  /* Look from a side: a name in BreastView.PRESETS. */
  lookFrom(preset) {
    this.view.view(preset);
    this.dispatchEvent(new CustomEvent("look", { detail: preset }));
  }

  /* ---- shapes with the model's triangles ---- */

  /* Show a shape. A slider calls this many times a second with the same spec.kind: only vertices move then. */
  show(shape, { colouring = null } = {}) {
    const fresh = this.showing !== "shape" || this.shape?.spec.kind !== shape.spec.kind || this.shape.label !== shape.label;
    this.shape = shape;
    if (!this.view.meshes.has("shape")) this.view.setMesh("shape", shape.positions, this.model.faces, { colour: SKIN });
    else this.view.setPositions("shape", shape.positions);
    if (this.showing !== "shape") {
      this.showing = "shape";
      this.view.setMarkers([]);
      for (const name of ["scan", "result"]) this.view.remove(name);
      this._arrange();
      this.view.fit();
    } else if (fresh) this.bodyLines = [];
    const names = offered(shape, this.model);
    if (colouring && names.includes(colouring)) this.colouring = colouring;
    else if (!names.includes(this.colouring)) this.colouring = "plain";
    this.paint();
    if (fresh) {
      this.placeLines();
      this._caption();
      this._changed();
    }
  }

  colourings() { return this.showing === "shape" ? offered(this.shape, this.model) : ["plain"]; }

  setColouring(name) {
    this.colouring = name;
    this.ends = {};
    this.paint();
    this._changed();
  }

  /* Colour the shape anew. */
  paint() {
    if (!this.shape) return;
    if (this.colouring === "plain") {
      const own = this.ownSkin && this.shape.skin;
      this.view.setColours("shape", own ? this.shape.skin : null, { photo: true });
      this.view.setColourBar(null);
      return;
    }
    const { values, scale, plain } = evaluate(this.colouring, this.shape, this.model, this.ends);
    const colours = BreastColours.colour(values, scale);
    if (plain) values.forEach((value, i) => { if (plain(value)) colours.set(SKIN_RGB, 3 * i); });
    this.view.setColours("shape", colours);
    this.view.setColourBar(scale.label ? scale : null);
  }

  /* Whether there is skin to show, of the scanner or carried over from it. */
  get hasSkin() { return this.showing === "scan" ? Boolean(this.scan?.image ?? this.scan?.colours) : Boolean(this.shape?.skin); }

  /* The patient's own skin, or one plain colour in which the shape is seen better. */
  setOwnSkin(on) {
    this.ownSkin = on;
    if (this.showing === "scan" && this.scan) {
      this._placeScan();
      if (this.scan.result) this.showResult(this.scan.result, this.scanParts);
    } else this.paint();
    this._paintKept();
    this._changed();
  }

  /* ---- two shapes ---- */

  /* A shape as it is now: sliders move the one that is shown. */
  still() { return { ...this.shape, positions: this.shape.positions.slice() }; }

  keep(shape, token) {
    this.kept = { ...shape, token };
    this.keptLabels[token] = shape.label;
    this.view.setMesh("kept", this.kept.positions, this.model.faces, { colour: KEPT, pickable: false });
    if (this.layout === "single") this.layout = "side";
    this._arrange();
    this.view.fit();
    this._changed();
  }

  /* The shape that the server keeps: {token}, or null. */
  async setKept(known) {
    if (!known) { if (this.kept) this.forget(); return; }
    if (this.kept?.token === known.token) return;
    const found = await fetchShape({ kind: "kept" });
    this.kept = { ...found, label: this.keptLabels[known.token] ?? found.label, token: known.token };
    this.view.setMesh("kept", this.kept.positions, this.model.faces, { colour: KEPT, pickable: false });
    if (this.layout === "single") this.layout = "side";
    this._arrange();
    this._changed();
  }

  forget() {
    this.kept = null;
    this.layout = "single";
    this.view.remove("kept");
    this._arrange();
    this.view.fit();
    this._changed();
  }

  /* Another shape to compare with, which the server laid on this one: {label, positions}; null takes it away. */
  compareWith(other, layout) {
    this.kept = other;
    this.layout = other ? layout : "single";
    if (other) this.view.setMesh("kept", other.positions, this.model.faces, { colour: KEPT, pickable: false });
    else this.view.remove("kept");
    this._arrange();
    this.view.fit();
    this._changed();
  }

  setLayout(layout) {
    this.layout = layout;
    this._arrange();
    this.view.fit();
    this._changed();
  }

  /* The second shape in its own skin too; see-through over the first one it is blue. */
  _paintKept() {
    if (!this.kept) return;
    const own = this.ownSkin && this.layout !== "overlay" ? this.kept.skin : null;
    this.view.setColours("kept", own ?? null, { photo: true });
  }

  _arrange() {
    const shape = this.showing === "shape", two = shape && this.shape && this.kept ? this.layout : "single";
    const step = two === "side" ? this._width() / 2 : 0, right = this._right;
    if (this.view.meshes.has("shape")) this.view.setStyle("shape", { visible: shape, offset: right.map(part => part * step) });
    if (this.kept) {
      this.view.setStyle("kept", {
        visible: two !== "single" && two !== "blink", opacity: two === "overlay" ? 0.4 : 1, offset: right.map(part => -part * step) });
    }
    this._paintKept();
    this.view.setSplit(two === "split" ? { left: "kept", right: "shape", at: this.splitAt } : null);
    clearInterval(this._blinking);
    if (two === "blink") this._blinking = setInterval(() => this._blink(), BLINK);
    this._caption();
    this.placeLines();
  }

  /* The one and the other in turn, slowly enough for everybody's eyes. */
  _blink() {
    if (!this.kept || this.layout !== "blink" || this.showing !== "shape") { clearInterval(this._blinking); return; }
    const other = this.view.meshes.get("shape").style.visible;
    this.view.setStyle("shape", { visible: !other });
    this.view.setStyle("kept", { visible: other });
    this.captions.querySelectorAll(".caption").forEach(caption => { caption.hidden = caption.classList.contains(other ? "now" : "kept"); });
  }

  /* Where the split is, 0 to 1 of the picture's width. */
  setSplitAt(at) {
    this.splitAt = Math.min(Math.max(at, 0.02), 0.98);
    if (this.layout === "split" && this.kept) this.view.setSplit({ left: "kept", right: "shape", at: this.splitAt });
    this.dispatchEvent(new Event("split"));
  }

  /* ---- lines on the body ---- */

  /* [{name, points, colour, label, dashed}] in the coordinates of what is shown: the scan's own, or the shape's. */
  setLines(lines) {
    this.bodyLines = lines;
    this.placeLines();
  }

  placeLines() {
    const { scan, showing } = this, offset = showing === "shape" ? this.view.meshes.get("shape")?.style.offset ?? [0, 0, 0] : [0, 0, 0];
    this.view.setLines(this.bodyLines.map(line => ({ ...line, points: line.points.map(point => showing === "scan" && scan
      ? apply(scan.turn, point) : point.map((value, i) => value + offset[i])) })));
  }

  /* What is under a point of the window, in the coordinates of what is shown: {point} or null. */
  pointAt(clientX, clientY) {
    const hit = this.view.pick(clientX, clientY);
    if (!hit || (hit.mesh !== "shape" && hit.mesh !== "scan")) return null;
    return hit.mesh === "scan" ? apply(transposed(this.scan.turn), hit.point) : hit.point;
  }

  _caption() {
    const two = this.showing === "shape" && this.shape && this.kept ? this.layout : "single";
    this.captions.replaceChildren();
    if (two === "single") return;
    const front = this.view.camera.matrixWorld.elements[0] >= 0;  // else seen from behind
    const sides = two === "side" ? (front ? [`${t("R")} `, ` ${t("L")}`] : [`${t("L")} `, ` ${t("R")}`]) : ["", ""];
    const [kept, now] = this.kept.token ? [`${t("Kept")}: `, `${t("Now")}: `] : ["", ""];  // else both were chosen by name
    for (const [text, where] of [[`${kept}${this.kept.label}${two === "overlay" ? ` (${t("blue, see-through")})` : ""}`, "kept"],
      [now + this.shape.label, "now"]]) {
      const caption = document.createElement("p");
      caption.textContent = sides[0] + text + sides[1];
      caption.className = `caption ${two} ${where}`;
      this.captions.append(caption);
    }
  }

  _width() {
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < this.shape.positions.length; i += 3) {
      low = Math.min(low, this.shape.positions[i], this.shape.positions[i + 2]);
      high = Math.max(high, this.shape.positions[i], this.shape.positions[i + 2]);
    }
    return 1.08 * (high - low);
  }

  /* Two shapes stay side by side on the screen from wherever one looks. */
  _afterFrame() {
    const m = this.view.camera.matrixWorld.elements, right = [m[0], m[1], m[2]];
    if (this.layout !== "side" || !this.kept || this.showing !== "shape") return;
    if (Math.hypot(...right.map((part, i) => part - this._right[i])) < 1e-4) return;
    this._right = right;
    this._arrange();
  }

  /* ---- a raw scan ---- */

  /* How scans are turned, for the page's notes. */
  turns() { return { ...this._turns }; }

  setTurns(turns) {
    this._turns = { ...turns };
    if (!this.scan) return;
    this.scan.turn = turns[this.scan.key] ?? IDENTITY;
    this.scan.stands = this.scan.key in turns;
  }

  /* {key, positions, faces, uv, image, colours}: shown with its texture, ready for picking. */
  showScan(scan) {
    this.showing = "scan";
    // The same object again after a visit to another tab: it stands as it was turned.
    const known = this._turns[scan.key];
    this.scan = Object.assign(scan, { turn: known ?? IDENTITY, result: scan.result ?? null, stands: Boolean(known) });
    this.scanParts = "scan";
    this.view.remove("result");
    this._placeScan();
    this.view.setColourBar(null);
    this._arrange();
    this.lookFrom("front");
    this._changed();
  }

  /* Nothing is shown, and nothing can be clicked, until the next scan is there. */
  clearScan() {
    this.showing = "scan";
    this.scan = null;
    this.markers = [];
    this.view.setMarkers([]);
    for (const name of ["scan", "result"]) this.view.remove(name);
    this.view.setColourBar(null);
    this._arrange();
    this._changed();
  }

  _placeScan() {
    const { positions, faces, uv, image, colours } = this.scan;
    this.view.remove("scan");
    this.view.setMesh("scan", this._turned(positions), faces, { colour: SKIN, visible: true });
    if (!this.ownSkin) return;
    if (image) this.view.setTexture("scan", uv, image);
    else if (colours) this.view.setColours("scan", colours, { photo: true });
  }

  _turned(positions) {
    const turned = new Float32Array(positions.length);
    for (let i = 0; i < turned.length; i += 3) turned.set(apply(this.scan.turn, positions.subarray(i, i + 3)), i);
    return turned;
  }

  turnScan(axis) {
    this._turns[this.scan.key] = this.scan.turn = product(TURNS[axis], this.scan.turn);
    this._placeScan();
    this.view.fit();
    this.placeMarkers(this.markers);
    if (this.scan.result) this.showResult(this.scan.result, this.scanParts);
  }

  /* The registered shape over the scan: {positions, faces, residual}; parts is "scan", "result" or "both". */
  showResult(result, parts) {
    this.scan.result = result;
    this.scanParts = parts;
    const turned = this._turned(result.positions);
    this.view.setMesh("result", turned, result.faces, { colour: SKIN, pickable: false, visible: parts !== "scan" });
    this.view.setStyle("scan", { visible: parts !== "result", opacity: parts === "both" ? 0.45 : 1 });
    let scale = null;
    if (result.residual && parts !== "scan") {
      const found = evaluate("residual", { positions: turned, maps: { residual: result.residual } }, null, {});
      scale = found.scale;
      this.view.setColours("result", BreastColours.colour(found.values, scale));
    }
    this.view.setColourBar(scale);
    this._changed();
  }

  /* The program knows which way up the scan is: turn it so, once. */
  standScan(turn) {
    if (!this.scan || this.scan.stands) return;
    Object.assign(this.scan, { stands: true, turn });
    this._turns[this.scan.key] = turn;
    this._placeScan();
    this.lookFrom("front");
    if (this.scan.result) this.showResult(this.scan.result, this.scanParts);
  }

  /* [{name, point, label, active, ring, doubtful}] in the scan's coordinates; a ring says how sure the program is. */
  placeMarkers(markers) {
    this.markers = markers;
    if (this.showing !== "scan" || !this.scan) return;
    this.view.setMarkers(markers.map(({ name, point, label, active, ring, doubtful }) => ({
      name, label: doubtful ? `${label}: ${t("doubtful")}` : label, active, dashed: doubtful, position: apply(this.scan.turn, point),
      ring: ring?.map(each => apply(this.scan.turn, each)), colour: active ? "#c2410c" : doubtful ? "#a34700" : "#0b5563" })));
  }

  /* The marker that can be seen under a point of the window, within so many pixels; its name or null. */
  markerAt(clientX, clientY, reach) {
    if (this.showing !== "scan" || !this.scan) return null;
    const seen = this.view.markers.filter(({ element }) => !element.classList.contains("bv-name-behind"));
    const found = seen.map(({ name, position }) => {
      const [x, y] = this.view.project(position);
      return { name, away: Math.hypot(x - clientX, y - clientY) };
    }).filter(({ away }) => away <= reach).sort((a, b) => a.away - b.away);
    return found[0]?.name ?? null;
  }

  /* The line of sight through a point of the window, in the scan's coordinates; null beside the scan. */
  lineOfSight(clientX, clientY) {
    const hit = this.view.pick(clientX, clientY);
    if (!hit || hit.mesh !== "scan" || !this.scan) return null;
    const back = transposed(this.scan.turn), origin = this.view.camera.position.toArray();
    const direction = hit.point.map((value, i) => value - origin[i]), length = Math.hypot(...direction);
    return { origin: apply(back, origin), direction: apply(back, direction.map(value => value / length)), point: apply(back, hit.point) };
  }

  centre() {
    const box = this.view.canvas.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  }
}
