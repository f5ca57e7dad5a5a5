/* Measures of the shown shape: the strip under the view, the full table, the gauge of plausibility. */

import { t, word } from "./language.js";
import { make, part } from "./elements.js";
import { pairWording, sentence, withSpread, wording } from "./figures.js";
import { complain } from "./notices.js";
import { newest, patiently, post } from "./server.js";

const MAIN = ["SN-NL", "SN-NR", "NL-NR", "volume-left", "volume-right"];
/* Measures take as long as the picture, and where few cores do both, the eye comes first. */
const pictureFirst = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)));
const keyOf = measure => `${measure.name} ${measure.kind}`;

export class Measures extends EventTarget {
  constructor() {
    super();
    this.shown = null;      // the server's answer for the shown shape
    this.other = null;      // the one for the second column
    this.tape = false;
    this.beside = { label: t("Average"), spec: { kind: "mean" } };
    this.spec = null;       // the shape whose measures are wanted; null where nothing is shown that has any
    this.asking = null;     // the one that the server measures now: an older one while a slider moves
    this.ask = newest(spec => this._follow(spec));
    for (const radio of document.getElementsByName("distance-kind")) {
      radio.addEventListener("change", () => {
        this.tape = radio.value === "tape";
        this.compareWith(this.beside.label, this.beside.spec);
        this.again();
      });
    }
  }

  follow(spec) {
    // Figures of another kind of shape are not seen beside this one while its own are awaited.
    part("strip").classList.toggle("waiting", this.shown !== null && this.asking?.kind !== spec.kind);
    this.spec = spec;
    return this.ask(spec);
  }

  again() { if (this.spec) this.follow(this.spec); }

  /* What stands in the second column from the next measuring on: {label, spec}. */
  compareWith(label, spec) {
    this.beside = { label, spec };
    this.other = null;
  }

  clear(text) {
    this.spec = this.asking = this.shown = null;
    part("strip").classList.remove("waiting");
    part("strip").replaceChildren(make("p", { className: "hint" }, text));
  }

  async _follow(spec) {
    if (!this.spec) return;  // it waited, and is no longer shown
    this.asking = spec;
    try {
      // Asked again while the server prepares something, but not for a shape that has gone meanwhile.
      const ask = shape => patiently(() => this.asking === spec ? post("api/measures", { shape, tape: this.tape }) : null);
      await pictureFirst();
      if (this.asking !== spec) return;
      const shown = await ask(spec);
      if (this.asking !== spec) return;
      this.shown = shown;
      part("strip").classList.toggle("waiting", this.spec?.kind !== spec.kind);
      this._strip();
      this._gauge();
      this._table();
      this.dispatchEvent(new Event("change"));
      if (this._tableVisible() && !this.other) {
        const { beside } = this, other = await ask(beside.spec);
        if (this.beside !== beside || this.asking !== spec) return;
        this.other = other;
        this._table();
      }
    } catch (error) {
      if (this.spec === spec) complain(error);  // else it is about a shape that has gone
    }
  }

  value(name) { return this.shown?.measures.find(measure => measure.name === name && measure.kind !== "tape"); }

  _tableVisible() { return !part("panel-measures").hidden; }

  _strip() {
    const items = MAIN.map(name => this.value(name)).filter(Boolean).map(measure => make("div", { className: "measure" },
      make("dt", {}, wording(measure)), make("dd", { id: `strip-${measure.name}` }, withSpread(measure),
        ...(measure.kind === "straight" && measure.value !== null ? [make("small", {}, ` ${t("straight")}`)] : []))));
    const how = this.shown.plausibility;
    if (how) {
      items.push(make("div", { className: "measure" }, make("dt", {}, t("Plausibility")),
        make("dd", { id: "strip-plausibility", className: how.level }, t(how.level))));
    }
    part("strip").replaceChildren(make("dl", {}, ...items));
  }

  /* A scale from the average outwards, in words first. */
  _gauge() {
    const how = this.shown.plausibility;
    if (!how) { part("gauge").replaceChildren(); return; }
    // Within a zone the needle follows the share of the model's subjects who are less unusual.
    const share = 1 - how.plausibility;
    const place = { usual: 2 + 29 * share, unusual: 35 + 30 * share, implausible: 83 }[how.level];
    const meter = make("div", { className: "meter", role: "meter", "aria-label": t("Plausibility"),
      "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(Math.round(100 * how.plausibility)),
      "aria-valuetext": `${t(how.level)}: ${how.text}` },
    ...[word("usual"), word("unusual"), word("implausible")].map(level => make("span", { className: level === how.level ? "zone here" : "zone" }, t(level))),
    make("i", { className: "needle", style: `left:${place.toFixed(1)}%` }));
    part("gauge").replaceChildren(make("h3", {}, t("How plausible is this shape?")), meter, make("p", { className: "hint" }, sentence(how.text)));
  }

  /* The measures of the chosen kind. */
  _chosen(measures) { return measures.filter(({ kind }) => kind !== (this.tape ? "straight" : "tape")); }

  _table() {
    if (!this.shown || !this._tableVisible()) return;
    const { other } = this, found = new Map(other?.measures.map(measure => [keyOf(measure), measure]));
    part("measures-other").textContent = this.beside.label;
    const all = this._chosen(this.shown.measures), without = all.filter(({ value }) => value === null);
    const rows = all.filter(({ value }) => value !== null).map(measure => make("tr", { id: `row-${measure.name}` },
      make("th", { scope: "row", title: measure.name }, wording(measure)),
      make("td", { className: "shown" }, withSpread(measure)),
      make("td", {}, other ? withSpread(found.get(keyOf(measure))) : "")));
    const sides = this._chosen(this.shown.left_minus_right).filter(({ value }) => value !== null);
    rows.push(...sides.map(measure => make("tr", { className: "difference" },
      make("th", { scope: "row" }, pairWording(measure)),
      make("td", {}, withSpread(measure, true)), make("td"))));
    part("measures-table").tBodies[0].replaceChildren(...rows);
    part("measures-note").textContent = without.length
      ? t`Not measured: ${without.map(measure => `${wording(measure)} (${measure.reason ?? t("not known")})`).join("; ")}.` : "";
  }
}
