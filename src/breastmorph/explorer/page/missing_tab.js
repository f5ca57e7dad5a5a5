/* The tab "Missing breast": its likely shape, how sure that is, and plausible alternatives. */

import { decimal, t, whole } from "./language.js";
import { Brush } from "./brush.js";
import { make, part, scoreSliders } from "./elements.js";
import { NAMES, quantity, sentence, typed, wording } from "./figures.js";
import { attempt, busy, runJob, say } from "./notices.js";
import { arrays, Refusal, remove, upload } from "./server.js";
import { fetchShape, labelOf } from "./shapes.js";

export function startMissingTab(page) {
  let patient = null, prediction = null, mirrored = null, modes = null, sliders = null, choice = "", answered = "", earlier = null;
  const brush = new Brush(page.stage, count => {
    part("paint-count").textContent = count ? t`${whole(count)} points painted.` : t("Nothing is painted yet.");
    ready(count);
  }, () => page.note("paint"));

  const ready = count => { part("missing-predict").disabled = !choice || (choice === "paint" && !(count ?? brush.ids().length)); };

  /* What is known of the lost breast, in the words of the server; a number that is none is said. */
  async function known() {
    const side = choice === "both" || choice === "paint" ? "" : choice, told = [];
    for (const [field, name, unit] of [["known-volume", `volume-${side}`, "cc"], ["known-nipple", `SN-N${side[0]?.toUpperCase()}`, "cm"]]) {
      const text = part(field).value.trim(), value = typed(text);
      if (!text) continue;
      if (!side) throw new Refusal({ cause: t("a measure is of one breast"), remedy: t("Choose the left or the right one, or leave the field empty") });
      if (!(value > 0)) throw new Refusal({ cause: t`${text} is no number`, remedy: t("Write for example 420 or 23.5") });
      told.push({ name, value, unit });
    }
    return { ...(told.length ? { known: told } : {}), ...(part("known-earlier").files.length ? { earlier: await earlierScan() } : {}) };
  }

  /* The key of the earlier scan: sent once, with its landmarks, or with those that the program finds. */
  async function earlierScan() {
    const files = [...part("known-earlier").files], name = files.map(file => `${file.name} ${file.size} ${file.lastModified}`).join();
    if (earlier?.name === name) return earlier.scan;
    const isMesh = file => page.state.mesh_suffixes.some(suffix => file.name.toLowerCase().endsWith(suffix));
    const mesh = files.find(isMesh), marks = files.find(file => !isMesh(file));
    if (!mesh) throw new Refusal({ cause: t("no scan is among these files"), remedy: t`Choose one of ${page.state.mesh_suffixes.join(" ")}` });
    if (earlier) await remove(`api/scans/${earlier.scan}`).catch(() => {});
    earlier = null;
    let state = await busy(t("Sending the earlier scan"), () => upload(`api/scans?beside=1&name=${encodeURIComponent(mesh.name)}`, mesh));
    if (marks) state = await upload(`api/scans/${state.scan}/landmarks?name=${encodeURIComponent(marks.name)}`, marks);
    else if (!state.complete) state = await runJob(t("Finding landmarks on the earlier scan"), `api/scans/${state.scan}/propose`);
    earlier = { name, scan: state.scan };
    return earlier.scan;
  }

  async function showPatient(colouring) {
    patient ??= await fetchShape({ kind: "patient" });
    if (choice === "paint") patient.maps.painted = brush.painted;
    part("missing-show").value = "patient";
    page.stage.show(patient, { colouring });
    page.measures.compareWith(t("Average"), { kind: "mean" });
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
    page.stage.show({ spec, label: labelOf(spec), positions, maps: prediction.maps, skin: prediction.skin });
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
    const long = measure.unit === "mm", figure = value => value === null ? "\u2013" : decimal(long ? value / 10 : value, long ? 1 : 0);
    // A spread too small for the digits shown is not zero.
    const spread = value => value === null ? "\u2013" : Number((long ? value / 10 : value).toFixed(long ? 1 : 0)) > 0 ? figure(value) : `< ${long ? decimal(0.1, 1) : 1}`;
    return make("tr", { id: `predicted-${measure.name}` }, make("th", { scope: "row" }, `${wording(measure)} (${long ? "cm" : t(measure.unit)})`),
      make("td", {}, measure.predicted === null ? "\u2013" : `${figure(measure.predicted)} \u00B1 ${spread(measure.sd)}`),
      make("td", {}, figure(measure.other)), make("td", {}, figure(measure.mirrored)));
  }

  /* "volume-right 301 cc", as files have it, for people; what is no measure is a word of its own. */
  function inWords(given) {
    const [name, value, unit] = given.split(" ");
    return name in NAMES ? `${wording({ name })} ${quantity(Number(value), unit)}` : t(given);
  }

  async function receive(result) {
    page.state.prediction = result;
    answered = choice;
    mirrored = null;
    [prediction, modes] = await Promise.all([fetchShape({ kind: "prediction" }), arrays("GET", "api/prediction/alternatives")]);
    sliders = scoreSliders(result.shares.map((share, m) => ({
      id: `alternative-${m + 1}`, label: t`Alternative ${m + 1}`, hint: t`share ${whole(100 * share)} %` })), 2, showAlternative);
    part("alternatives").replaceChildren(...sliders.roots);
    part("missing-warnings").replaceChildren(...result.warnings.map(text => make("li", {}, sentence(text))));
    part("missing-as-if").hidden = !result.breast_was_there;
    part("missing-as-if").textContent = t("This breast is on the scan. It is predicted as if it were missing, from the rest of the torso.");
    part("missing-table").tBodies[0].replaceChildren(...result.measures.map(row));
    part("missing-show").querySelector("[value=mirrored]").hidden = result.side === "both";  // there is none
    const { mean, largest } = result.sd_mm;
    part("missing-source").textContent = (result.given.length ? t`Given: ${result.given.map(inWords).join(", ")}.` + " " : "")
      + t`Uncertainty of the skin: ${decimal(mean, 1)} mm on average, ${decimal(largest, 1)} mm at most (standard deviation). It says what is usual among the model\u2019s subjects, not what an operation will give.`;
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
    ["known-volume", "known-nipple", "known-earlier"].forEach(field => { part(field).value = ""; });
    earlier = null;
    part("paint").hidden = part("missing-result").hidden = true;
    part("missing-predict").disabled = true;
  }

  for (const radio of document.getElementsByName("missing")) radio.addEventListener("change", () => { choose(radio.value); page.note("choice"); });
  for (const radio of document.getElementsByName("brush")) radio.addEventListener("change", () => brush.setMode(radio.value));
  part("brush-size").addEventListener("input", event => {
    brush.radius = Number(event.target.value);
    part("brush-value").textContent = `${event.target.value} mm`;
    event.target.setAttribute("aria-valuetext", `${event.target.value} mm`);
  });
  part("paint-clear").addEventListener("click", () => { brush.clear(page.model.mean.length / 3); page.note("paint"); attempt(() => showPatient("painted")); });
  part("missing-go").addEventListener("click", () => page.go("scan"));
  part("missing-show").addEventListener("change", () => attempt(showChoice));
  part("alternative-reset").addEventListener("click", () => { sliders.set([]); page.note("alternatives"); });
  part("alternative-random").addEventListener("click", () => { sliders.random(); page.note("alternatives"); say(t("Another plausible shape.")); });
  part("alternatives").addEventListener("change", () => page.note("alternatives"));
  part("alternatives").addEventListener("dblclick", () => page.note("alternatives"));
  const predict = () => attempt(async () => {
    const body = { ...(choice === "paint" ? { vertices: brush.ids() } : { side: choice }), ...await known() };
    await receive(await runJob(t("Predicting the breast"), "api/predict", body));
    brush.setMode("off");
    await showChoice();
    page.changed();
    await page.note("predict", { joined: true });
    part("save-sheet-kind").value = "prediction";
    part("missing-result").scrollIntoView({ block: "start", behavior: "smooth" });
    say(t("Predicted. Colours show how uncertain the skin is."));
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
    forget: clear,
    /* What the controls show, for the page's notes. */
    remember: () => ({ choice, answered, painted: brush.saved(), alternatives: prediction && sliders ? sliders.scores() : [] }),
    async restore(saved) {
      clear();
      const { prediction: result } = page.state, side = result && !result.painted ? result.side : "";
      if (page.state.patient && saved?.painted) brush.load(saved.painted, page.model.mean.length / 3);
      choice = page.state.patient ? saved?.choice ?? side : "";
      const radio = choice && document.querySelector(`[name=missing][value=${choice}]`);
      if (radio) radio.checked = true;
      part("paint").hidden = choice !== "paint";
      if (result) {
        await receive(result);
        answered = saved?.answered ?? choice;
        sliders.put(saved?.alternatives ?? []);
      }
      part("missing-result").hidden = !result || choice !== answered;
      ready();
    },
  };
}
