/* What is to be added or taken away, and cuts through the nipple: parts of the tab "Compare & measure". */

import { make, part } from "./elements.js";
import { quantity, sentence, signed } from "./figures.js";
import { decimal, t, whole } from "./language.js";
import { attempt, busy, say } from "./notices.js";
import { arrays, download, post } from "./server.js";
import { fetchShape } from "./shapes.js";

const SPACE = "http://www.w3.org/2000/svg";
const KINDS = { predicted: "prediction", mirrored: "mirrored", edited: "edit" };  // of plans: the shape

/* What there is to get to, of a state of the session: [[target, words] ...]. */
export function targetsOf({ prediction, edit, patient }) {
  const found = [];
  if (prediction) found.push(["predicted", t("the predicted breast")]);
  if (prediction && prediction.side !== "both") found.push(["mirrored", t("the mirror image of the other breast")]);
  if (edit && patient && edit.base === "patient") found.push(["edited", t("the edited shape")]);
  return found;
}

export function startPlan(page) {
  let map = null;  // thickness of the target that is shown

  /* ---- what is to be added ---- */


  const amount = (cc, sd) => `${whole(cc)}${sd === null ? "" : ` \u00b1 ${whole(sd)}`} ${t("cc")}`;
  const sides = { left: t("Left breast"), right: t("Right breast") };

  async function show() {
    const target = part("plan-target").value;
    const found = await busy(t("Comparing with the scan"), () => post("api/plan", { target }));
    // Of a synthetic model nothing may be read as advice.
    const [added, removed] = found.advice ? [t("To be added"), t("To be taken away")] : [t("Outside of the skin"), t("Inside of the skin")];
    part("plan-title").textContent = found.advice ? t("What is to be added or taken away") : t("Difference from the skin as it is (no advice)");
    part("plan-note").textContent = sentence(found.note);
    const row = (words, value) => make("tr", {}, make("th", { scope: "row" }, words), make("td", {}, value));
    part("plan-table").tBodies[0].replaceChildren(...found.sides.flatMap(one => [
      make("tr", { className: "person" }, make("th", { scope: "rowgroup", colSpan: 2 }, make("strong", {}, sides[one.side]))),
      row(added, amount(one.added_cc, one.added_sd_cc)), row(removed, amount(one.removed_cc, one.removed_sd_cc)),
      row(t("Together"), `${signed(one.volume_cc, 0)}${one.sd_cc === null ? "" : ` \u00b1 ${whole(one.sd_cc)}`} ${t("cc")}`),
      row(t("Base, wide and high"), one.base_width_mm === null ? t("not known") : `${quantity(one.base_width_mm, "mm")} \u00d7 ${quantity(one.base_height_mm, "mm")}`),
      row(t("Thickest"), `${signed(one.thickest_mm)} mm`)]));
    part("plan-files").replaceChildren(...found.sides.flatMap(one => [["added", added, one.added_cc], ["removed", removed, one.removed_cc]]
      .filter(([, , cc]) => cc > 0.05).map(([name, words]) => make("button", { className: "small", "data-solid": `${name}-${one.side}`, onclick: () => attempt(async () => {
        await download("POST", "api/download/plan", { target, side: one.side, part: name, format: "stl" }, `${name}-${one.side}.stl`);
        say(t("The solid is saved in the folder of your browser\u2019s downloads."));
      }) }, `${words}, ${sides[one.side]} (STL)`))));
    if (page.tab === "compare") await paint();
  }

  /* Colours of the thickness on the target. */
  async function paint() {
    const on = part("plan-map").checked, target = part("plan-target").value;
    map = null;
    if (!on) return;
    const shape = await fetchShape({ kind: KINDS[target] });
    map = shape.maps.thickness = (await arrays("POST", "api/plan/map", { target })).thickness;
    page.stage.compareWith(null);
    page.stage.show(shape, { colouring: "thickness" });
    if (page.stage.colouring !== "thickness") page.stage.setColouring("thickness");
  }

  part("plan-target").addEventListener("change", () => attempt(show));
  part("plan-map").addEventListener("change", () => attempt(async () => {
    await paint();
    if (!part("plan-map").checked) await page.tabs.compare.enter();
  }));

  /* ---- cuts ---- */

  function drawing(section, names) {
    // Across is to the patient's left in a level cut, forward in an upright one; both are seen as drawn on the sheet.
    const flat = section.kind === "level" ? ([x, , z]) => [x, z] : ([, y, z]) => [z, y];
    const outlines = section.outlines.map(one => one.line_mm.map(flat)), all = outlines.flat();
    if (!all.length) return [];
    const low = [0, 1].map(k => Math.min(...all.map(point => point[k]))), high = [0, 1].map(k => Math.max(...all.map(point => point[k])));
    const svg = document.createElementNS(SPACE, "svg"), pad = 8;
    svg.setAttribute("viewBox", `${low[0] - pad} ${-high[1] - pad} ${high[0] - low[0] + 2 * pad} ${high[1] - low[1] + 2 * pad}`);
    svg.setAttribute("role", "img");
    const words = section.kind === "level" ? t("Level cut") : t("Upright cut");
    svg.setAttribute("aria-label", words);
    outlines.forEach((line, k) => {
      const path = document.createElementNS(SPACE, "path");
      path.setAttribute("d", line.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${(-y).toFixed(1)}`).join(""));
      path.setAttribute("class", k === outlines.length - 1 ? "first" : "second");
      svg.append(path);
    });
    const areas = section.outlines.map((one, k) => `${names[k]}: ${one.area_cm2 === null ? t("not known") : `${decimal(one.area_cm2, 1)} cm\u00b2`}`);
    return [make("figure", { className: "cut" }, svg, make("figcaption", {}, make("strong", {}, words), ` \u2013 ${areas.join("; ")}`))];
  }

  async function cut() {
    const side = part("cut-side").value, { first, second } = page.tabs.compare.chosen();
    if (!side || !first) { part("cuts").replaceChildren(); return; }
    const shapes = [...second ? [second] : [], first];
    const { sections } = await post("api/sections", { shapes: shapes.map(({ spec }) => spec), side });
    part("cuts").replaceChildren(...sections.flatMap(section => drawing(section, shapes.map(({ label }) => label))));
  }
  part("cut-side").addEventListener("change", () => attempt(cut));

  return {
    /* For the shapes that are chosen now. */
    async show() {
      const known = targetsOf(page.state), before = part("plan-target").value;
      part("plan").hidden = !known.length;
      part("plan-target").replaceChildren(...known.map(([value, words]) => make("option", { value, selected: value === before }, words)));
      await cut();
      if (known.length && page.tab === "compare") await show();
    },
    /* How thick it is at a vertex; null where no map is shown. */
    at: vertex => map && `${signed(map[vertex])} mm`,
    leave() { map = null; part("plan-map").checked = false; },
  };
}
