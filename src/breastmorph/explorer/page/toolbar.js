/* The controls over the 3D view: where to look from, colours, comparison of two shapes, parts and pose of a scan. */

import { t } from "./language.js";
import { COLOURINGS } from "./colouring.js";
import { make, part } from "./elements.js";
import { attempt, say } from "./notices.js";
import { post, remove } from "./server.js";

export function startToolbar(page) {
  const { stage } = page;
  const presets = [...part("presets").children];
  const press = chosen => presets.forEach(button => button.setAttribute("aria-pressed", String(button === chosen)));
  for (const button of presets) button.addEventListener("click", () => stage.lookFrom(button.dataset.view));
  stage.addEventListener("look", event => press(presets.find(button => button.dataset.view === event.detail)));
  let place = null;  // of the camera, where a drag began; a click leaves it there
  stage.view.controls?.addEventListener("start", () => { place = stage.view.camera.position.clone(); });
  stage.view.controls?.addEventListener("change", () => { if (place && !place.equals(stage.view.camera.position)) press(null); });

  part("colouring").addEventListener("change", event => stage.setColouring(event.target.value));
  part("own-skin").addEventListener("change", event => stage.setOwnSkin(event.target.checked));
  part("keep").addEventListener("click", () => attempt(async () => {
    const shape = stage.still(), { scan } = page.state;  // they may be others by the time that the server answers
    const { token } = await post("api/kept", { shape: shape.spec });  // for tables: an edit or a patient may be another one by then
    if (page.state.scan !== scan) return;
    stage.keep(shape, token);
    page.state.kept = { token };
    say(t`Kept for comparison: ${stage.kept.label}. Change the shape and compare.`);
  }));
  part("forget").addEventListener("click", () => attempt(async () => {
    await remove("api/kept");
    stage.forget();
    page.state.kept = null;
    say(t("The kept shape is forgotten."));
    part("keep").focus();
  }));
  part("layout").addEventListener("change", event => stage.setLayout(event.target.value));
  part("scan-show").addEventListener("change", event => stage.showResult(stage.scan.result, event.target.value));
  for (const button of part("turning").children) button.addEventListener("click", () => { stage.turnScan(button.dataset.turn); page.note("pose"); });

  function refresh() {
    const shape = stage.showing === "shape", names = stage.colourings();
    part("colouring-label").hidden = !shape;
    part("colouring").replaceChildren(...names.map(name => make("option", { value: name, selected: name === stage.colouring },
      t(COLOURINGS[name].label))));
    part("own-skin-label").hidden = !stage.hasSkin;
    part("own-skin").checked = stage.ownSkin;
    part("comparison").hidden = !shape || page.tab === "compare";  // that tab has its own choice of what to compare
    part("keep").textContent = stage.kept ? t("Keep this one") : t("Keep to compare");
    part("forget").hidden = part("layout-label").hidden = !stage.kept;
    part("layout").value = stage.layout;
    part("scan-show-label").hidden = shape || !stage.scan?.result;
    part("scan-show").value = stage.scanParts;
    part("turning").hidden = shape || !stage.scan;
  }
  stage.addEventListener("change", refresh);
  refresh();
}
