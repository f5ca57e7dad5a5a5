/* The tab "Missing breast": its likely shape, how sure that is, and plausible alternatives. */

import { Brush } from "./brush.js";
import { make, part, scoreSliders } from "./elements.js";
import { sentence, wording } from "./figures.js";
import { attempt, runJob, say } from "./notices.js";
import { arrays, remove } from "./server.js";
import { fetchShape, labelOf } from "./shapes.js";

export function startMissingTab(page) {
  let patient = null, prediction = null, mirrored = null, modes = null, sliders = null, choice = "", answered = "";
  const brush = new Brush(page.stage, count => {
    part("paint-count").textContent = count ? `${count.toLocaleString("en")} points painted.` : "Nothing is painted yet.";
    ready(count);
  });

  const ready = count => { part("missing-predict").disabled = !choice || (choice === "paint" && !(count ?? brush.ids().length)); };

  async function showPatient(colouring) {
    patient ??= await fetchShape({ kind: "patient" });
    if (choice === "paint") patient.maps.painted = brush.painted;
    part("missing-show").value = "patient";
    page.stage.show(patient, { colouring });
    page.measures.compareWith("Average", { kind: "mean" });
    page.measures.follow(patient.spec);
  }

  /* The prediction plus what the sliders of alternatives add. */
  function showAlternative() {
    const scores = sliders.scores(), plain = scores.every(score => score === 0);
    const spec = plain ? { kind: "prediction" } : { kind: "alternative", scores };
    part("missing-show").value = "prediction";
    const positions = prediction.positions.slice(), k = modes.ids.length;
    scores.forEach((score, m) => {
      if (!score) return;
      for (let i = 0; i < k; i++) {
        for (let c = 0; c < 3; c++) positions[3 * modes.ids[i] + c] += score * modes.modes[3 * (m * k + i) + c];
      }
    });
    page.stage.show({ spec, label: labelOf(spec), positions, maps: prediction.maps });
    page.measures.follow(spec);
  }

  async function showChoice() {
    const what = part("missing-show").value;
    if (what === "patient") { await showPatient(choice === "paint" ? "painted" : "plain"); return; }
    if (what === "mirrored") {
      mirrored ??= await fetchShape({ kind: "mirrored" });
      page.stage.show(mirrored, { colouring: "plain" });
      page.measures.follow(mirrored.spec);
      return;
    }
    page.stage.show(prediction, { colouring: "uncertainty" });
    showAlternative();
  }

  /* Lengths come in mm and are shown in cm; the unit stands with the name, so that the columns stay narrow. */
  function row(measure) {
    const long = measure.unit === "mm", figure = value => value === null ? "\u2013" : long ? (value / 10).toFixed(1) : value.toFixed(0);
    // A spread too small for the digits shown is not zero.
    const spread = value => value === null ? "\u2013" : Number(figure(value)) > 0 ? figure(value) : long ? "< 0.1" : "< 1";
    return make("tr", { id: `predicted-${measure.name}` }, make("th", { scope: "row" }, `${wording(measure)} (${long ? "cm" : measure.unit})`),
      make("td", {}, measure.predicted === null ? "\u2013" : `${figure(measure.predicted)} \u00B1 ${spread(measure.sd)}`),
      make("td", {}, figure(measure.other)), make("td", {}, figure(measure.mirrored)));
  }

  async function receive(result) {
    page.state.prediction = result;
    answered = choice;
    mirrored = null;
    [prediction, modes] = await Promise.all([fetchShape({ kind: "prediction" }), arrays("GET", "api/prediction/alternatives")]);
    sliders = scoreSliders(result.shares.map((share, m) => ({
      id: `alternative-${m + 1}`, label: `Alternative ${m + 1}`, hint: `share ${(100 * share).toFixed(0)} %` })), 2, showAlternative);
    part("alternatives").replaceChildren(...sliders.roots);
    part("missing-warnings").replaceChildren(...result.warnings.map(text => make("li", {}, sentence(text))));
    part("missing-as-if").hidden = !result.breast_was_there;
    part("missing-as-if").textContent = `This breast is on the scan. It is predicted as if it were missing, from the rest of the torso.`;
    part("missing-table").tBodies[0].replaceChildren(...result.measures.map(row));
    const { mean, largest } = result.sd_mm;
    part("missing-source").textContent = `Uncertainty of the skin: ${mean.toFixed(1)} mm on average, ${largest.toFixed(1)} mm at most (standard deviation). `
      + `It says what is usual among the model\u2019s subjects, not what an operation will give.`;
    part("missing-result").hidden = false;
    part("missing-show").value = "prediction";
  }

  function choose(value) {
    choice = value;
    part("paint").hidden = value !== "paint";
    part("missing-result").hidden = !prediction || value !== answered;  // else it would be taken for the answer
    if (value === "paint") {
      if (!brush.painted) brush.clear(page.model.mean.length / 3);
      brush.setMode(document.querySelector("[name=brush]:checked").value);
      attempt(() => showPatient("painted"));
    } else {
      brush.setMode("off");
      if (page.stage.colouring === "painted") page.stage.setColouring("plain");
      if (prediction) {
        part("missing-show").value = "prediction";
        attempt(value === answered ? showChoice : () => showPatient("plain"));
      }
    }
    ready();
  }

  /* Nothing of the last patient may stay on the screen. */
  function clear() {
    patient = prediction = mirrored = modes = brush.painted = null;
    choice = answered = "";
    document.querySelectorAll("[name=missing]").forEach(radio => { radio.checked = false; });
    part("paint").hidden = part("missing-result").hidden = true;
    part("missing-predict").disabled = true;
  }

  for (const radio of document.getElementsByName("missing")) radio.addEventListener("change", () => choose(radio.value));
  for (const radio of document.getElementsByName("brush")) radio.addEventListener("change", () => brush.setMode(radio.value));
  part("brush-size").addEventListener("input", event => {
    brush.radius = Number(event.target.value);
    part("brush-value").textContent = `${event.target.value} mm`;
    event.target.setAttribute("aria-valuetext", `${event.target.value} mm`);
  });
  part("paint-clear").addEventListener("click", () => { brush.clear(page.model.mean.length / 3); attempt(() => showPatient("painted")); });
  part("missing-go").addEventListener("click", () => page.go("scan"));
  part("missing-show").addEventListener("change", () => attempt(showChoice));
  part("alternative-reset").addEventListener("click", () => sliders.set([]));
  part("alternative-random").addEventListener("click", () => { sliders.random(); say("Another plausible shape."); });
  const predict = () => attempt(async () => {
    const body = choice === "paint" ? { vertices: brush.ids() } : { side: choice };
    await receive(await runJob("Predicting the breast", "api/predict", body));
    brush.setMode("off");
    await showChoice();
    page.changed();
    part("save-sheet-kind").value = "prediction";
    part("missing-result").scrollIntoView({ block: "start", behavior: "smooth" });
    say("Predicted. Colours show how uncertain the skin is.");
  });
  part("missing-predict").addEventListener("click", predict);

  return {
    async enter() {
      part("missing-empty").hidden = Boolean(page.state.patient);
      part("missing-body").hidden = !page.state.patient;
      if (!page.state.patient) { page.showDefault(); return; }
      const absent = page.state.patient.absent_side;
      if (absent && !choice) {
        document.querySelector(`[name=missing][value=${absent}]`).checked = true;
        choose(absent);
      }
      if (choice === "paint") brush.setMode(document.querySelector("[name=brush]:checked").value);
      if (page.state.prediction && choice === answered) await showChoice();
      else await showPatient(choice === "paint" ? "painted" : "plain");
    },
    leave() { brush.setMode("off"); },
    /* The breast that is known to be missing, without further questions. */
    async predict() {
      await page.go("missing");
      if (choice && choice !== "paint" && !part("missing-predict").disabled) await predict();
    },
    /* Another patient, or none. */
    async forget() {
      if (page.state.prediction) await remove("api/prediction").catch(() => {});
      page.state.prediction = null;
      clear();
    },
    async restore() {
      clear();
      if (!page.state.prediction) return;
      const { side, painted } = page.state.prediction;
      if (!painted && side) { document.querySelector(`[name=missing][value=${side}]`).checked = true; choose(side); }
      await receive(page.state.prediction);
    },
  };
}
