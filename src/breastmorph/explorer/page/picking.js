/* Landmarks on a raw scan: what the program proposes and how sure it is, which one next, where it is, undo. */

import { t, whole } from "./language.js";
import { make } from "./elements.js";
import { sentences } from "./figures.js";
import { attempt, follow, runJob, say } from "./notices.js";
import { get, post, upload } from "./server.js";
import { sketch } from "./sketch.js";

export class Picker {
  /* `onChange(state)` hears of every change of the scan's landmarks; `confirm` is {label, then} of a button that says yes to
     what was proposed. */
  constructor(root, page, onChange, confirm = null) {
    this.page = page;
    this.onChange = onChange;
    this.state = null;
    this.chosen = null;  // a landmark that the user wants to set, out of turn
    this.sending = false;  // a click is on its way to the server
    this.asked = new Set();  // scans for which the program was asked
    this.confirmLabel = confirm?.label ?? "";
    root.append(document.getElementById("picker-template").content.cloneNode(true));
    this.root = root.querySelector(".picker");
    const parts = this.parts = Object.fromEntries([...this.root.querySelectorAll("[data-part]")].map(element => [element.dataset.part, element]));
    parts.undo.addEventListener("click", () => this._change("undo"));
    parts.keep.addEventListener("click", () => this._change("confirm", { landmark: this.current() }));
    parts.confirm.addEventListener("click", () => this._change("confirm").then(confirm?.then));
    parts.skip.addEventListener("click", () => this._change("skip", { landmark: this.current() }));
    parts.absent.addEventListener("change", event => this._change("absent", { side: event.target.value }));
    parts.file.addEventListener("click", () => parts["file-input"].click());
    parts["file-input"].addEventListener("change", event => {
      const [file] = event.target.files;
      if (file) attempt(() => this.readFile(file));
      event.target.value = "";
    });
  }

  get landmarks() { return this.page.state.picking.map(one => ({ ...one, label: t(one.label), text: t(one.text) })); }

  current() { return this.chosen ?? this.state?.next ?? null; }

  async _change(action, body = {}) {
    await attempt(async () => {
      this.chosen = null;
      const answer = await post(`api/scans/${this.state.scan}/${action}`, body);
      if (this.state?.scan !== answer.scan) return;
      this.update(answer);
      say({ undo: t("The last step is undone."), swap: t("Left and right are exchanged."), skip: t("Skipped."), confirm: t("Confirmed.") }[action]
        ?? (body.side ? t`The ${t(body.side)} breast is marked as missing.` : t("Both breasts are there.")));
    });
  }

  async readFile(file) {
    const answer = await upload(`api/scans/${this.state.scan}/landmarks?name=${encodeURIComponent(file.name)}`, file);
    this.update(answer);
    const unknown = answer.unknown_labels;
    say([t`${Object.keys(answer.landmarks).length} landmarks from ${file.name}.`, unknown.length ? t`Not understood: ${unknown.join(", ")}.` : ""].join(" ").trim());
  }

  /* Say yes to all that was proposed, where nobody has yet. */
  async confirm() { if (!this.state.confirmed) this.update(await post(`api/scans/${this.state.scan}/confirm`)); }

  /* Ask the program for the landmarks of a scan that has none; a user may stop it and set them by hand. */
  async propose() {
    const { scan, landmarks, proposal } = this.state ?? {};
    if (!scan || !this.page.state.propose || proposal || Object.keys(landmarks).length || this.asked.has(scan)) return;
    this.asked.add(scan);
    await attempt(async () => {
      const answer = await this._proposed(scan);
      if (this.state?.scan !== scan || !answer) return;
      if (this.page.picker === this) this.update(answer);
      else this.onChange(this.state = answer);
      const count = Object.keys(answer.found).length, doubtful = this._doubtful().length;
      say(!count ? t("No points were found: set them by hand.") : doubtful ? t`${count} points are proposed, ${doubtful} of them doubtful.` : t`${count} points are proposed.`);
    });
  }

  async _proposed(scan) {
    const title = t("Looking for the landmarks"), { job } = this.page.state;
    if (job?.kind === "propose") {  // asked before the page was loaded again
      this.page.state.job = null;
      await follow(title, async () => job);
      const now = await get(`api/scans/${scan}`);
      if (now.proposal) return now;
    }
    for (;;) {
      try {
        return await runJob(title, `api/scans/${scan}/propose`);
      } catch (error) {
        if (error.code !== "busy") throw error;
      }
      await new Promise(done => setTimeout(done, 500));  // something else of this tab comes first, perhaps the same question
      if (this.state?.scan !== scan) { this.asked.delete(scan); return null; }
      const now = await get(`api/scans/${scan}`);
      if (now.proposal || Object.keys(now.landmarks).length) return now;
    }
  }

  _doubtful() { return Object.keys(this.state.found).filter(name => this.state.found[name].doubtful); }

  /* A click into the view, Enter with the crosshair, or the end of a drag. */
  pick(clientX, clientY, name = this.current()) {
    const scan = this.state?.scan;
    if (!name || !scan || this.page.stage.scan?.key !== scan) return;  // what is shown is not what would be marked
    const sight = this.page.stage.lineOfSight(clientX, clientY);
    if (!sight) { say(t("That is beside the scan. Click on the skin.")); return; }
    // The next click would be taken for the same point.
    if (this.sending) { say(t`One moment: ${this._label(name)} is being set. Click again then.`); return; }
    this.sending = true;
    return attempt(async () => {
      const answer = await post(`api/scans/${scan}/pick`, {
        scan, landmark: name, ray: { origin: sight.origin, direction: sight.direction }, snap: this.parts.snap.checked });
      if (this.state?.scan !== answer.scan) return;  // it was saved for its own scan; another one is open now
      this.chosen = null;
      const label = this._label(name), moved = answer.moved_mm > 1 ? ` ${t`Moved ${whole(answer.moved_mm)} mm to the lowest point.`}` : "";
      this.update(answer);
      const next = this.current();
      say(`${t`${label} is set.`}${moved} ${next ? `${t("Next")}: ${this._label(next)}.` : t("All points are set.")}`);
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
    const found = known && state.found[known.name], proposed = Object.keys(state.found).length > 0 && !state.confirmed;
    if (state.turn) this.page.stage.standScan(state.turn);
    parts.next.textContent = found ? `${found.doubtful ? t("Doubtful") : t("Found")}: ${known.label}`
      : known ? `${known.optional ? t("If you like") : t("Next")}: ${known.label}` : proposed ? t("Are these points right?") : t("All points are set");
    parts.text.textContent = found ? `${found.doubtful ? t("The program is not sure of it") : t("The program found it")}, \u00B1 ${whole(found.mm)} mm. ${known.text} ${t("If it lies elsewhere, click there or drag it.")}`
      : known ? `${known.text} ${t("Click on the skin to set it.")}`
      : `${proposed ? `${t("The program found them; the rings show how sure it is.")} ` : ""}${t("Turn the view and check them. Drag a point, or choose it in the list, to set it again.")}`;
    parts.keep.hidden = !found?.doubtful;
    parts.confirm.hidden = !this.confirmLabel || !proposed || !state.complete;
    parts.confirm.textContent = this.confirmLabel || t("Confirm");
    this.root.classList.toggle("proposed", Object.keys(state.found).length > 0);
    parts.sure.hidden = !Object.keys(state.found).length;
    parts.sketch.replaceChildren(sketch(known?.name, Object.keys(state.landmarks), known?.label ?? ""));
    parts.undo.disabled = !state.can_undo;
    parts.skip.hidden = !known?.optional;
    parts.absent.value = state.absent_side;
    parts.saved.textContent = state.source === "queue" ? (state.saved ? t("Saved in the folder, beside the scan.") : t("Not saved yet.")) : "";
    // What needs a person stands on top.
    const lacks = landmark => proposed && !landmark.optional && landmark.side !== state.absent_side && !(landmark.name in state.landmarks);
    const rank = landmark => state.found[landmark.name]?.doubtful ? 0 : lacks(landmark) ? 1 : 2;
    parts.list.replaceChildren(...[...this.landmarks].sort((a, b) => rank(a) - rank(b)).map(landmark => this._row(landmark, name)));
    this._tellProposal(state.proposal);
    this._warn(state.warnings);
    this._suggest(state);
    this._mark(name);
    this.page.stage.view.container.classList.toggle("picking", Boolean(name));
    this.onChange(state);
  }

  _row(landmark, active) {
    const set = landmark.name in this.state.landmarks, missing = landmark.of_breast && landmark.side === this.state.absent_side;
    const found = this.state.found[landmark.name], sure = found && `${found.doubtful ? t("doubtful") : t("found")}, \u00B1 ${whole(found.mm)} mm`;
    const words = missing ? t("breast is missing") : sure ?? (set ? t("set") : landmark.name === active ? t("click on the skin") : landmark.optional ? t("optional")
      : Object.keys(this.state.found).length ? t("not found") : t("to do"));
    const sign = missing ? "\u2013" : found?.doubtful ? "!" : found ? "\u25CC" : set ? "\u2713" : landmark.name === active ? "\u25CE" : "\u25CB";
    return make("li", {}, make("button", {
      className: `${landmark.name === active ? "active" : ""} ${found?.doubtful ? "doubtful" : ""}`.trim(), disabled: Boolean(missing), "data-landmark": landmark.name,
      "aria-current": landmark.name === active ? "step" : "false",
      onclick: () => { this.chosen = landmark.name; this.update(this.state); say(t`Click on the skin to set: ${landmark.label}.`); },
    }, make("span", { className: "sign", "aria-hidden": "true" }, sign), landmark.label, make("small", {}, ` ${words}`)));
  }

  /* What the program did not find, and why. */
  _tellProposal(proposal) {
    const box = this.parts.proposal, said = proposal ? [proposal.refused, ...proposal.left_out].filter(Boolean) : [];
    const side = proposal?.absent && proposal.absent === this.state.absent_side ? proposal.absent : "";
    box.hidden = !said.length && !side;
    box.replaceChildren(...said.map(({ message, remedy }) => make("p", {}, sentences(message, remedy))),
      ...side ? [make("p", {}, t`The program finds no ${t(side)} breast. If there is one, say so under Breasts.`)] : []);
  }

  _warn(warnings) {
    const swapped = warnings.find(warning => warning.code === "sides-swapped"), box = this.parts.swapped;
    const others = warnings.filter(warning => warning !== swapped);
    this.parts.warnings.replaceChildren(...others.map(({ message, remedy }) => make("li", {}, sentences(message, remedy))));
    if (!swapped) { box.hidden = true; box.replaceChildren(); return; }
    if (!box.hidden) return;
    box.hidden = false;
    box.replaceChildren(make("p", {}, make("strong", {}, `${t("Left and right look mixed up.")} `), sentences(swapped.message, swapped.remedy)),
      make("button", { "data-part": "swap", onclick: () => this._change("swap") }, t("Exchange left and right")));
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
    box.replaceChildren(make("p", {}, t`There are points of one breast only (${t(there)}). Is the ${t(side)} breast missing?`),
      make("button", { onclick: () => this._change("absent", { side }) }, t`Yes, the ${t(side)} breast is missing`));
  }

  _mark(active) {
    this.page.stage.placeMarkers(Object.entries(this.state.landmarks).map(([name, point]) => ({
      name, point, label: this._label(name), active: name === active, ring: this.state.found[name]?.ring, doubtful: this.state.found[name]?.doubtful })));
  }

  /* While a point is dragged it follows the pointer over the skin. */
  follow(name, clientX, clientY) {
    const sight = this.page.stage.lineOfSight(clientX, clientY);
    if (!sight) return;
    this.page.stage.placeMarkers(this.page.stage.markers.map(marker => marker.name !== name ? marker
      : { ...marker, point: sight.point, active: true, doubtful: false, ring: null }));
  }
}

const REACH = { mouse: 9, touch: 20 };  // px from a point within which it is grasped

/* A point that is shown can be dragged to another place; elsewhere dragging turns the view. */
export function startDragging(page) {
  const { view } = page.stage, { canvas, container } = view;
  if (!canvas) return;
  const under = event => page.picker?.state ? page.stage.markerAt(event.clientX, event.clientY, REACH[event.pointerType] ?? REACH.mouse) : null;
  let held = null;
  container.addEventListener("pointerdown", event => {
    const name = event.isPrimary && event.button === 0 && event.target === canvas ? under(event) : null;
    held = name && { name, from: [event.clientX, event.clientY], moved: false };
    if (held) view.setNavigation(false);
  }, { capture: true });
  canvas.addEventListener("pointermove", event => {
    if (!held) { canvas.style.cursor = event.buttons ? "" : under(event) ? "grab" : ""; return; }
    held.moved ||= Math.hypot(event.clientX - held.from[0], event.clientY - held.from[1]) >= 5;
    if (held.moved && page.picker) { canvas.setPointerCapture(event.pointerId); page.picker.follow(held.name, event.clientX, event.clientY); }
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, async event => {
    if (!held) return;
    const { name, moved } = held, { picker } = page;
    held = null;
    view.setNavigation(true);
    if (moved && end === "pointerup") await picker?.pick(event.clientX, event.clientY, name);
    if (moved && picker?.state) picker.update(picker.state);  // where nothing was set it goes back
  });
}
