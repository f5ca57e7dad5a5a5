/* Guided picking of landmarks on a raw scan: which one next, where it is, undo, left and right mixed up. */

import { make } from "./elements.js";
import { sentences } from "./figures.js";
import { attempt, say } from "./notices.js";
import { post, upload } from "./server.js";
import { sketch } from "./sketch.js";

export class Picker {
  /* `onChange(state)` hears of every change of the scan's landmarks. */
  constructor(root, page, onChange) {
    this.page = page;
    this.onChange = onChange;
    this.state = null;
    this.chosen = null;  // a landmark that the user wants to set, out of turn
    this.sending = false;  // a click is on its way to the server
    root.append(document.getElementById("picker-template").content.cloneNode(true));
    this.root = root.querySelector(".picker");
    const parts = this.parts = Object.fromEntries([...this.root.querySelectorAll("[data-part]")].map(element => [element.dataset.part, element]));
    parts.undo.addEventListener("click", () => this._change("undo"));
    parts.skip.addEventListener("click", () => this._change("skip", { landmark: this.current() }));
    parts.absent.addEventListener("change", event => this._change("absent", { side: event.target.value }));
    parts.file.addEventListener("click", () => parts["file-input"].click());
    parts["file-input"].addEventListener("change", event => {
      const [file] = event.target.files;
      if (file) attempt(() => this.readFile(file));
      event.target.value = "";
    });
  }

  get landmarks() { return this.page.state.picking; }

  current() { return this.chosen ?? this.state?.next ?? null; }

  async _change(action, body = {}) {
    await attempt(async () => {
      this.chosen = null;
      const answer = await post(`api/scans/${this.state.scan}/${action}`, body);
      if (this.state?.scan !== answer.scan) return;
      this.update(answer);
      say({ undo: "The last step is undone.", swap: "Left and right are exchanged.", skip: "Skipped." }[action]
        ?? (body.side ? `The ${body.side} breast is marked as missing.` : "Both breasts are there."));
    });
  }

  async readFile(file) {
    const answer = await upload(`api/scans/${this.state.scan}/landmarks?name=${encodeURIComponent(file.name)}`, file);
    this.update(answer);
    const unknown = answer.unknown_labels;
    say(`${Object.keys(answer.landmarks).length} landmarks from ${file.name}.${unknown.length ? ` Not understood: ${unknown.join(", ")}.` : ""}`);
  }

  /* A click into the view, or Enter with the crosshair. */
  pick(clientX, clientY) {
    const name = this.current();
    const scan = this.state?.scan;
    if (!name || !scan || this.page.stage.scan?.key !== scan) return;  // what is shown is not what would be marked
    const sight = this.page.stage.lineOfSight(clientX, clientY);
    if (!sight) { say("That is beside the scan. Click on the skin."); return; }
    // The next click would be taken for the same point.
    if (this.sending) { say(`One moment: ${this._label(name)} is being set. Click again then.`); return; }
    this.sending = true;
    return attempt(async () => {
      const answer = await post(`api/scans/${scan}/pick`, {
        scan, landmark: name, ray: { origin: sight.origin, direction: sight.direction }, snap: this.parts.snap.checked });
      if (this.state?.scan !== answer.scan) return;  // it was saved for its own scan; another one is open now
      this.chosen = null;
      const label = this._label(name), moved = answer.moved_mm > 1 ? ` Moved ${answer.moved_mm.toFixed(0)} mm to the lowest point.` : "";
      this.update(answer);
      const next = this.current();
      say(`${label} is set.${moved} ${next ? `Next: ${this._label(next)}.` : "All points are set."}`);
    }).finally(() => { this.sending = false; });
  }

  _label(name) { return this.landmarks.find(landmark => landmark.name === name)?.label ?? name.replaceAll("_", " "); }

  /* No scan is open: nothing can be set. */
  close() {
    this.state = this.chosen = null;
    this.root.hidden = true;
    if (this.page.picker === this) this.page.picker = null;
    this.page.stage.view.container.classList.remove("picking");
  }

  /* Show another state of the scan's landmarks. */
  update(state) {
    this.state = state;
    this.root.hidden = false;
    const { parts } = this, name = this.current(), known = this.landmarks.find(landmark => landmark.name === name);
    parts.next.textContent = known ? `${known.optional ? "If you like" : "Next"}: ${known.label}` : "All points are set";
    parts.text.textContent = known ? `${known.text} Click on the skin to set it.` : "Turn the view and check them. Choose a point in the list to set it again.";
    parts.sketch.replaceChildren(sketch(known?.name, Object.keys(state.landmarks), known?.label ?? ""));
    parts.undo.disabled = !state.can_undo;
    parts.skip.hidden = !known?.optional;
    parts.absent.value = state.absent_side;
    parts.saved.textContent = state.source === "queue" ? (state.saved ? "Saved in the folder, beside the scan." : "Not saved yet.") : "";
    parts.list.replaceChildren(...this.landmarks.map(landmark => this._row(landmark, name)));
    this._warn(state.warnings);
    this._suggest(state);
    this._mark(name);
    this.page.stage.view.container.classList.toggle("picking", Boolean(name));
    this.onChange(state);
  }

  _row(landmark, active) {
    const set = landmark.name in this.state.landmarks, missing = landmark.of_breast && landmark.side === this.state.absent_side;
    const words = missing ? "breast is missing" : set ? "set" : landmark.name === active ? "click on the skin" : landmark.optional ? "optional" : "to do";
    const sign = missing ? "\u2013" : set ? "\u2713" : landmark.name === active ? "\u25CE" : "\u25CB";
    return make("li", {}, make("button", {
      className: landmark.name === active ? "active" : "", disabled: Boolean(missing), "data-landmark": landmark.name,
      "aria-current": landmark.name === active ? "step" : "false",
      onclick: () => { this.chosen = landmark.name; this.update(this.state); say(`Click on the skin to set: ${landmark.label}.`); },
    }, make("span", { className: "sign", "aria-hidden": "true" }, sign), landmark.label, make("small", {}, ` ${words}`)));
  }

  _warn(warnings) {
    const swapped = warnings.find(warning => warning.code === "sides-swapped"), box = this.parts.swapped;
    const others = warnings.filter(warning => warning !== swapped);
    this.parts.warnings.replaceChildren(...others.map(({ message, remedy }) => make("li", {}, sentences(message, remedy))));
    if (!swapped) { box.hidden = true; box.replaceChildren(); return; }
    if (!box.hidden) return;
    box.hidden = false;
    box.replaceChildren(make("p", {}, make("strong", {}, "Left and right look mixed up. "), sentences(swapped.message, swapped.remedy)),
      make("button", { "data-part": "swap", onclick: () => this._change("swap") }, "Exchange left and right"));
  }

  /* All points but those of one breast are there: perhaps it is missing. */
  _suggest(state) {
    const needed = this.landmarks.filter(({ optional }) => !optional), lacks = ({ name }) => !(name in state.landmarks);
    const side = !state.absent_side && ["left", "right"].find(each => needed.some(lacks)
      && needed.every(landmark => lacks(landmark) === (landmark.side === each)));
    const there = side === "left" ? "right" : "left";
    const box = this.parts.suggestion;
    box.hidden = !side;
    if (!side) return;
    box.replaceChildren(make("p", {}, `There are points of the ${there} breast only. Is the patient\u2019s ${side} breast missing?`),
      make("button", { onclick: () => this._change("absent", { side }) }, `Yes, the ${side} breast is missing`));
  }

  _mark(active) {
    this.page.stage.placeMarkers(Object.entries(this.state.landmarks).map(([name, point]) => ({
      name, point, label: this._label(name), active: name === active })));
  }
}
