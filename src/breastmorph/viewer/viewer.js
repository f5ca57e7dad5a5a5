/* The 3D view of BreastMorph's pages, on three.js.

   Coordinates are those of the patient, in millimetres: x to the patient's left, y up, z forward. The camera
   starts in front, so the patient's left is on the right of the screen. Pictures are drawn only when something
   changed. Needs three.min.js, colours.js, surface.js, overlay.js, mesh.js and camera.js before it, and viewer.css.

     const view = new BreastView(element, { label: "Mean shape" });
     view.setMesh("mean", positions, faces, { colour: "#d9bfae" });   // Float32Array 3n, Uint32Array 3m
     view.setPositions("mean", moved);
     view.pick(event.clientX, event.clientY);                         // { mesh, face, point, barycentric } */
"use strict";

class BreastView {
  /* Options: label (text for screen readers), wheel ("always", or "focus": the wheel zooms only after a click into
     the picture, so that a long page still scrolls), onClick(event) for a click that is no drag. */
  constructor(container, options = {}) {
    this.container = container;
    this.options = { label: "3D view", wheel: "always", ...options };
    this.onFrame = null;  // called after every picture
    this.frames = 0;
    this.meshes = new Map();
    this.markers = [];
    this.lines = [];
    this.split = null;  // {left, right, at}: names of meshes on either side of a line at this part of the width
    this._asked = 0;
    container.classList.add("bv");
    this.scene = new THREE.Scene();
    this.scene.background = new THREE.Color("#f4f5f7");
    this.eye = new BreastCamera.Camera();
    this.camera = this.eye.lens;
    this.markerGroup = new THREE.Group();
    this.lineGroup = new THREE.Group();
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0xa8a09a, 0.95), this.camera, this.markerGroup, this.lineGroup);
    this.available = this._start();
    this.overlay = new BreastOverlay.Overlay(container);
    if (this.available) {
      this._listen();
      this.resize();
    } else {
      this._apologise();
    }
  }

  static PRESETS = BreastCamera.PRESETS;

  /* ---- meshes ---- */

  /* Add a mesh or put another in its place. Style as in setStyle. */
  setMesh(name, positions, faces, style = {}) {
    const before = this.meshes.get(name), mesh = new BreastMesh.Mesh(this.scene, name, positions, faces, before?.style);
    before?.dispose();
    this.meshes.set(name, mesh);
    mesh.setStyle(style);
    if (this.eye.resting) this.fit();
    return this._changed();
  }

  /* Move the vertices of a mesh; the fast way, for sliders. */
  setPositions(name, positions) {
    this.mesh(name).setPositions(positions);
    return this._changed();
  }

  /* Colours of the vertices: Uint8Array of 3 n, sRGB; null for one colour. Those of skin are a photo, shaded in full; those that
     stand for numbers are shaded less, to be compared with the colour bar. */
  setColours(name, colours, { photo = false } = {}) {
    this.mesh(name).setColours(colours, photo);
    return this._changed();
  }

  /* A picture on the surface: uv of each vertex (2 n), v upwards; image is a loaded <img>, <canvas> or ImageBitmap
     (a bitmap made with imageOrientation "flipY"). Colours of the vertices, where there are any, hide it. */
  setTexture(name, uv, image) {
    this.mesh(name).setTexture(uv, image);
    return this._changed();
  }

  /* colour, opacity, visible, offset ([x, y, z] mm, to show meshes side by side), pickable. What is not named
     stays. */
  setStyle(name, style) {
    this.mesh(name).setStyle(style);
    return this._changed();
  }

  remove(name) {
    this.meshes.get(name)?.dispose();
    this.meshes.delete(name);
    return this._changed();
  }

  mesh(name) {
    const mesh = this.meshes.get(name);
    if (!mesh) throw new Error(`there is no mesh ${name} in the view`);
    return mesh;
  }

  /* Current positions of a mesh (not a copy). */
  positions(name) { return this.mesh(name).positions; }

  /* ---- markers, colour bar ---- */

  /* Points on the surface: [{name, position: [x, y, z], colour, label, active, ring, dashed}]; a ring is a line of points
     around where it may lie. Replaces those before. */
  setMarkers(markers) {
    this.markerGroup.children.forEach(part => {
      part.material.dispose();
      if (part.geometry !== BreastView._BALL) part.geometry.dispose();
    });
    this.markerGroup.clear();
    this.markers = markers.map(marker => ({ colour: "#0b7285", label: "", active: false, ...marker }));
    for (const { colour, position, active, ring, dashed } of this.markers) {
      const paint = new THREE.MeshBasicMaterial({ color: active ? "#d9480f" : colour, side: THREE.DoubleSide });
      const ball = new THREE.Mesh(BreastView._BALL, paint);
      ball.position.fromArray(position);
      ball.scale.setScalar(BreastView._MARKER * (active ? 1.4 : 1) * (ring ? 0.6 : 1));  // it must not hide its ring
      this.markerGroup.add(ball);
      if (ring) this._addTube(BreastSurface.tube(ring, BreastView._RING * (active ? 1.5 : 1), dashed), paint, this.markerGroup);
    }
    this.overlay.nameMarkers(this._named());
    return this._changed();
  }

  /* Lines on the surface: [{name, points: [[x, y, z] ...], colour, label, dashed}]; the label stands at the middle. Replaces
     those before. */
  setLines(lines) {
    this.lineGroup.children.forEach(part => { part.material.dispose(); part.geometry.dispose(); });
    this.lineGroup.clear();
    this.lines = lines.map(({ name, points, colour = "#c92a2a", label = "", dashed = false }) => {
      if (points.length > 1) this._addTube(BreastSurface.tube(points, BreastView._LINE, dashed, true), new THREE.MeshBasicMaterial({ color: colour, side: THREE.DoubleSide }), this.lineGroup);
      return { name, label, active: false, position: points[Math.floor((points.length - 1) / 2)] };
    });
    this.overlay.nameMarkers(this._named());
    return this._changed();
  }

  /* Show one mesh left and another one right of a line: {left, right, at}, or null for all everywhere. */
  setSplit(split) {
    this.split = split;
    return this._changed();
  }

  _named() { return [...this.markers, ...this.lines.filter(({ label }) => label)]; }

  _addTube({ positions, faces }, paint, group) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(positions, 3));
    geometry.setIndex(new THREE.BufferAttribute(faces, 1));
    group.add(new THREE.Mesh(geometry, paint));
  }

  /* {label, unit, min, max, map}: the legend of the colours; null takes it away. */
  setColourBar(scale) {
    this.overlay.showBar(scale);
    return this;
  }

  /* ---- what is under a point of the screen ---- */

  /* The surface under a point of the browser window: {mesh, face, point, barycentric, distance}, or null. The
     point is in the mesh's own coordinates, without its offset. Exact for the positions shown. */
  pick(clientX, clientY) {
    const box = this._box();
    const x = (clientX - box.left) / box.width * 2 - 1, y = 1 - (clientY - box.top) / box.height * 2;
    return this._cast(...this.eye.ray(x, y));
  }

  /* Where a point [x, y, z] of the scene lies in the browser window: [clientX, clientY]. */
  project(point) {
    const box = this._box(), at = new THREE.Vector3().fromArray(point).project(this.camera);
    return [box.left + (at.x + 1) / 2 * box.width, box.top + (1 - at.y) / 2 * box.height];
  }

  _cast(origin, direction) {
    let best = null;
    for (const mesh of this.meshes.values()) {
      const hit = mesh.style.visible && mesh.style.pickable ? mesh.hit(origin, direction) : null;
      if (hit && (!best || hit.distance < best.distance)) best = { mesh: mesh.name, ...hit };
    }
    return best;
  }

  /* ---- the camera ---- */

  /* Look from a side: a name in BreastView.PRESETS, or [degrees to the patient's left, degrees up]. */
  view(preset) {
    this.eye.stand(...(Array.isArray(preset) ? preset : BreastView.PRESETS[preset]));
    return this.fit();
  }

  /* Move near or far until all visible meshes are in the picture; keeps the direction of view. */
  fit() {
    const shown = [...this.meshes.values()].filter(mesh => mesh.style.visible);
    this.eye.fit(shown.map(mesh => BreastSurface.bounds(mesh.positions)
      .map(corner => corner.map((value, axis) => value + mesh.style.offset[axis]))));
    if (this.controls) [this.controls.minDistance, this.controls.maxDistance] = this.eye.limits;
    return this._changed();
  }

  /* Colour behind the body, as in a style sheet. */
  setGround(colour) {
    this.scene.background.set(colour);
    return this._changed();
  }

  /* Whether dragging turns the view; off while a page paints on the surface. */
  setNavigation(on) {
    if (this.controls) this.controls.enabled = on;
    return this;
  }

  /* ---- drawing ---- */

  /* Draw soon: at most once a screen refresh, however often it is called. */
  invalidate() {
    if (this._asked || !this.available) return;
    this._asked = requestAnimationFrame(() => this.render());
  }

  /* Draw now; with fine, as sharp as at rest. */
  render({ fine = false } = {}) {
    if (!this.available) return;
    if (this._asked) cancelAnimationFrame(this._asked);
    this._asked = 0;
    this._sharpen(fine);
    this._draw();
    this.overlay.showSides(this.eye.axis(0).x, this.eye.axis(2).x);
    this.overlay.placeMarkers(this._named(), this.camera);
    this.frames += 1;
    clearTimeout(this._resting);
    if (!fine) this._resting = setTimeout(() => this._rest(), 180);
    this.onFrame?.();
  }

  _draw() {
    const { renderer, split } = this, { left, right, at } = split ?? {};
    if (!split || !this.meshes.has(left) || !this.meshes.has(right)) { renderer.render(this.scene, this.camera); return; }
    const width = this.container.clientWidth, height = this.container.clientHeight, edge = Math.round(at * width);
    renderer.setScissorTest(true);
    for (const [shown, hidden, from, wide] of [[left, right, 0, edge], [right, left, edge, width - edge]]) {
      this.meshes.get(hidden).object.visible = false;
      this.meshes.get(shown).object.visible = true;
      renderer.setScissor(from, 0, wide, height);
      renderer.render(this.scene, this.camera);
    }
    renderer.setScissorTest(false);
    for (const name of [left, right]) this.meshes.get(name).paint();
  }

  /* The picture as a PNG data URL, with the patient's sides, names of markers and colour bar in it; `note` is a text that
     nobody may overlook. */
  screenshot({ overlay = true, note = "" } = {}) {
    if (!this.available) return "";
    this.render({ fine: true });
    const picture = document.createElement("canvas"), from = this.canvas;
    picture.width = from.width;
    picture.height = from.height;
    const context = picture.getContext("2d");
    context.drawImage(from, 0, 0);
    this._fadeMarkers();
    if (overlay) this.overlay.draw(context, from.width / from.clientWidth);
    if (note) BreastOverlay.stamp(context, note, from.width / from.clientWidth);
    return picture.toDataURL("image/png");
  }

  /* Fit the picture to its container; happens by itself when the container changes. */
  resize() {
    if (!this.available) return;
    const width = Math.max(this.container.clientWidth, 1), height = Math.max(this.container.clientHeight, 1);
    this.renderer.setSize(width, height);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    if (this.eye.resting) this.fit();
    this.render();  // at once: a canvas of a new size is empty
  }

  /* ---- inside ---- */

  _changed() {
    this.invalidate();
    return this;
  }

  _box() { return (this.canvas ?? this.container).getBoundingClientRect(); }

  /* Without a graphics card every pixel costs: few of them while something moves, many once it rests. */
  _sharpen(fine) {
    let ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (this.slow) {
      const afforded = Math.sqrt((fine ? 2.2e6 : 0.16e6) / (this.container.clientWidth * this.container.clientHeight));
      ratio = Math.min(Math.max(afforded, fine ? 1 : 0.4), fine ? 2 : 1);
    }
    if (this.renderer.getPixelRatio() !== ratio) this.renderer.setPixelRatio(ratio);
  }

  _rest() {
    if (this.slow) this.render({ fine: true });
    this._fadeMarkers();
  }

  /* Fade names of markers behind the surface; a ray each, so only at rest. */
  _fadeMarkers() {
    for (const marker of this._named()) {
      const ray = new THREE.Vector3().fromArray(marker.position).sub(this.camera.position), distance = ray.length();
      const hit = this._cast(this.camera.position, ray.normalize());
      this.overlay.fade(marker, hit !== null && hit.distance < distance - 2 * BreastView._MARKER);
    }
  }

  _start() {
    try {
      const probe = document.createElement("canvas").getContext("webgl2");
      if (!probe) return false;
      const known = probe.getExtension("WEBGL_debug_renderer_info");
      const name = known ? probe.getParameter(known.UNMASKED_RENDERER_WEBGL) : "";
      probe.getExtension("WEBGL_lose_context")?.loseContext();
      this.slow = /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
      this.renderer = new THREE.WebGLRenderer({ antialias: !this.slow, powerPreference: "high-performance" });
    } catch {
      return false;
    }
    const canvas = this.canvas = this.renderer.domElement;
    canvas.className = "bv-canvas";
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", `${this.options.label}. ${BreastOverlay.words.keys}`);
    this.container.prepend(canvas);
    const controls = this.controls = new THREE.OrbitControls(this.camera, canvas);
    controls.target = this.eye.target;
    [controls.minPolarAngle, controls.maxPolarAngle] = [0.02, Math.PI - 0.02];
    controls.enableZoom = this.options.wheel === "always";
    controls.addEventListener("change", () => this.invalidate());
    controls.addEventListener("start", () => { this.eye.resting = false; });
    return true;
  }

  _apologise() {
    const note = document.createElement("p");
    note.className = "bv-missing";
    note.setAttribute("role", "status");
    note.textContent = BreastOverlay.words.noPicture;
    this.overlay.root.hidden = true;
    this.container.append(note);
  }

  _listen() {
    const canvas = this.canvas;
    canvas.addEventListener("keydown", event => {
      if (event.key === "Home") this.view("front");
      else if (!this.eye.key(event)) return;
      event.preventDefault();
      this.invalidate();
    });
    if (this.options.wheel === "focus") {
      canvas.addEventListener("focus", () => { this.controls.enableZoom = true; });
      canvas.addEventListener("blur", () => { this.controls.enableZoom = false; });
    }
    canvas.addEventListener("webglcontextrestored", () => this.invalidate());
    let down = null;
    canvas.addEventListener("pointerdown", event => {
      canvas.focus({ preventScroll: true });
      down = event.isPrimary && event.button === 0 ? [event.clientX, event.clientY] : null;
    });
    canvas.addEventListener("pointerup", event => {
      const still = down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 5;
      down = null;
      if (still) this.options.onClick?.(event);
    });
    new ResizeObserver(() => this.resize()).observe(this.container);
  }
}

BreastView._BALL = new THREE.SphereGeometry(1, 20, 14);
BreastView._MARKER = 3.2;  // mm
BreastView._RING = 0.9;
BreastView._LINE = 1.1;
