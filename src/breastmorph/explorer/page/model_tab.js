/* The tab "Model": a slider for every way in which people differ. */

import { make, signed, slider } from "./figures.js";
import { attempt, say } from "./notices.js";
import { post } from "./server.js";
import { labelOf, morph } from "./shapes.js";

const FIRST = 6;  // sliders shown at once; the others change little
const part = id => document.getElementById(id);

export function startModelTab(page) {
  let scores = [], sliders = [], positions = null, all = false;

  const shape = () => ({ spec: { kind: "model", scores: [...scores] }, label: labelOf({ kind: "model", scores }), positions, maps: {} });

  function draw() {
    morph(page.model, scores, positions);
    page.stage.show(shape());
    page.measures.follow({ kind: "model", scores: [...scores] });
  }

  function set(values) {
    scores = scores.map((_, k) => Math.min(Math.max(values[k] ?? 0, -3), 3));
    sliders.forEach(({ input, show }, k) => { input.value = scores[k]; show(`${signed(scores[k])} sd`); });
    draw();
  }

  function build() {
    const { deviations, shares } = page.state.model;
    scores = new Array(page.model.count).fill(0);
    positions = page.model.mean.slice();
    sliders = scores.map((_, k) => slider({
      id: `mode-${k + 1}`, label: `Mode ${k + 1}`, hint: `${(100 * shares[k]).toFixed(0)} % of all variation`,
      min: -3, max: 3, step: 0.1, value: 0, text: "0.0 sd", centred: true,
      onInput: value => { scores[k] = value; sliders[k].show(`${signed(value)} sd`); draw(); },
    }));
    sliders.forEach(({ root, input }, k) => {
      root.title = `+1 sd moves the skin by ${deviations[k].toFixed(1)} mm`;
      // Back to the average by a double click, as in other programs with such sliders.
      input.addEventListener("dblclick", () => { scores[k] = 0; input.value = 0; sliders[k].show("0.0 sd"); draw(); });
    });
    part("model-sliders").replaceChildren(...sliders.map(({ root }) => root));
    unfold();
  }

  function unfold() {
    sliders.forEach(({ root }, k) => { root.hidden = !all && k >= FIRST; });
    part("model-more").hidden = sliders.length <= FIRST;
    part("model-more").textContent = all ? "Fewer sliders" : `${sliders.length - FIRST} more sliders`;
    part("model-more").setAttribute("aria-expanded", String(all));
  }

  part("model-more").addEventListener("click", () => { all = !all; unfold(); });
  part("model-reset").addEventListener("click", () => { page.stage.ends = {}; set([]); say("The average shape."); });
  part("model-sample").addEventListener("click", () => attempt(async () => {
    set((await post("api/model/sample")).scores);
    say("A random shape of the model.");
  }));

  /* A model without all landmarks: measures and prediction need them, so they can be picked once. */
  function askForLandmarks() {
    const missing = page.state.model.missing_landmarks ?? [];
    part("model-landmarks").hidden = !missing.length;
    if (!missing.length) return;
    part("model-landmarks").replaceChildren(
      make("p", {}, make("strong", {}, "This model does not know all landmarks. "),
        `Missing: ${missing.map(name => name.replaceAll("_", " ")).join(", ")}. Click them once on its average shape; then everything works.`),
      make("button", { id: "model-pick", onclick: () => page.pickOnMean() }, "Place them now"));
  }

  return {
    enter() { if (page.model) draw(); },
    ready() {
      const { name, synthetic, note, subjects } = page.state.model;
      part("model-note").textContent = [synthetic ? "This model is made of synthetic torsos, for trying things out only: not for planning." : "",
        note ?? "", subjects ? `Built from ${subjects} ${synthetic ? "synthetic torsos" : "subjects"}.` : ""]
        .filter(Boolean).join(" ");
      part("model-name").textContent = name === "Demo model" ? name : `Model: ${name}`;
      part("model-synthetic").hidden = !synthetic;
      part("model-body").hidden = false;
      build();
      askForLandmarks();
    },
    landmarksChanged: askForLandmarks,
    shape, set, scores: () => [...scores],
  };
}
