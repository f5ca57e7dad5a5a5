/* Parts of the page: finding them, making them, sliders. */

import { decimal, t } from "./language.js";
import { signed } from "./figures.js";

export const part = id => document.getElementById(id);

/* An element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/* A labelled slider: label and value above, the slider below. Returns {root, input, show(text)}. */
export function slider({ id, label, min, max, step, value, text, hint = "", centred = false, onInput }) {
  const output = make("output", { className: "value" });
  const input = make("input", { type: "range", id, min, max, step, value });
  input.addEventListener("input", () => onInput(Number(input.value)));
  const show = words => { output.textContent = words; input.setAttribute("aria-valuetext", words); };
  const root = make("div", { className: centred ? "slider centred" : "slider" },
    make("div", { className: "slider-head" }, make("label", { htmlFor: id }, label,
      ...(hint ? [make("small", {}, ` ${hint}`)] : [])), output), input);
  output.htmlFor = id;
  show(text);
  return { root, input, show };
}

/* Sliders of scores in standard deviations, from -limit to limit, [{id, label, hint}]; `onChange()` hears of every
   change. A double click goes back to 0, as in other programs with such sliders. */
export function scoreSliders(named, limit, onChange) {
  const scores = named.map(() => 0);
  const sliders = named.map((names, k) => slider({
    ...names, min: -limit, max: limit, step: 0.1, value: 0, text: `${decimal(0, 1)} ${t("sd")}`, centred: true, onInput: value => { place(value, k); onChange(); } }));
  function place(value, k) {
    scores[k] = Math.min(Math.max(value, -limit), limit);
    sliders[k].input.value = scores[k];
    sliders[k].show(`${signed(scores[k])} ${t("sd")}`);
  }
  sliders.forEach(({ input }, k) => input.addEventListener("dblclick", () => { place(0, k); onChange(); }));
  return {
    roots: sliders.map(({ root }) => root),
    scores: () => [...scores],
    put(values) { scores.forEach((_, k) => place(values[k] ?? 0, k)); },
    set(values) { scores.forEach((_, k) => place(values[k] ?? 0, k)); onChange(); },
    random() { this.set(scores.map(normal)); },
  };
}

/* A number of the standard normal distribution (Box and Muller). */
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
