/* The tab "Model": a slider for every way in which people differ. */

import { decimal, t, whole } from "./language.js";
import { make, part, scoreSliders } from "./elements.js";
import { attempt, say } from "./notices.js";
import { download } from "./server.js";
import { labelOf, morph } from "./shapes.js";

const FIRST = 6;  // sliders shown at once; the others change little

export function startModelTab(page) {
  let sliders = null, positions = null, all = false, lacked = false;

  const spec = () => ({ kind: "model", scores: sliders.scores() });
  const shape = () => ({ spec: spec(), label: labelOf(spec()), positions, maps: {} });

  function draw() {
    morph(page.model, sliders.scores(), positions);
    page.stage.show(shape());
    page.measures.follow(spec());
  }

  function build() {
    const { deviations, shares } = page.state.model;
    positions = page.model.mean.slice();
    sliders = scoreSliders(shares.map((share, k) => ({
      id: `mode-${k + 1}`, label: t`Mode ${k + 1}`, hint: t`${whole(100 * share)} % of all variation` })), 3, draw);
    sliders.roots.forEach((root, k) => { root.title = t`+1 sd moves the skin by ${decimal(deviations[k], 1)} mm`; });
    part("model-sliders").replaceChildren(...sliders.roots);
    unfold();
  }

  function unfold() {
    const more = sliders.roots.length - FIRST;
    sliders.roots.forEach((root, k) => { root.hidden = !all && k >= FIRST; });
    part("model-more").hidden = more <= 0;
    part("model-more").textContent = all ? t("Fewer sliders") : t`${more} more sliders`;
    part("model-more").setAttribute("aria-expanded", String(all));
  }

  part("model-more").addEventListener("click", () => { all = !all; unfold(); });
  part("model-reset").addEventListener("click", () => { page.stage.ends = {}; sliders.set([]); page.note("sliders"); say(t("The average shape.")); });
  part("model-sample").addEventListener("click", () => { sliders.random(); page.note("sliders"); say(t("A random shape of the model.")); });
  part("model-sliders").addEventListener("change", () => page.note("sliders"));
  part("model-sliders").addEventListener("dblclick", () => page.note("sliders"));

  /* A model without all landmarks: measures and prediction need them, so they can be picked once. */
  function describeLandmarks() {
    const missing = page.state.model.missing_landmarks, box = part("model-landmarks");
    const { built } = page.state.model;
    box.hidden = !lacked && !built;
    if (missing.length) {
      box.replaceChildren(
        make("p", {}, make("strong", {}, `${t("This model does not know all landmarks.")} `),
          t`Missing: ${missing.map(name => name.replaceAll("_", " ")).join(", ")}. Click them once on its average shape; then everything works.`),
        make("button", { id: "model-pick", onclick: () => page.pickOnMean() }, t("Place them now")));
    } else {
      box.replaceChildren(
        make("p", {}, built ? t("This model was built here and is lost when this window is closed. Save it to keep it.")
          : t("The model knows its landmarks now, until this window is closed. Save it with them to keep them.")),
        make("button", { id: "model-save", onclick: () => attempt(async () => {
          await download("GET", "api/model/file", undefined, "model.h5");
          say(t("The model is saved in the folder of your browser\u2019s downloads."));
        }) }, t("Save the model")));
    }
  }

  return {
    enter: draw,
    ready() {
      const { name, synthetic, card, subjects, missing_landmarks: missing } = page.state.model;
      lacked ||= missing.length > 0;
      part("model-note").textContent = [card ? t(card) : "",
        subjects ? (synthetic ? t`Built from ${subjects} synthetic torsos.` : t`Built from ${subjects} subjects.`) : ""]
        .filter(Boolean).join(" ");
      part("model-name").textContent = name === "Demo model" ? t("Demo model") : t`Model: ${name}`;
      part("model-synthetic").hidden = !synthetic;
      part("model-body").hidden = false;
      build();
      describeLandmarks();
    },
    landmarksChanged: describeLandmarks,
    /* Put the sliders elsewhere without showing it: the tab that is open shows its own. */
    put(values) { sliders.put(values); morph(page.model, sliders.scores(), positions); },
    shape, scores: () => sliders.scores(),
  };
}
