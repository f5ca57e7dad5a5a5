/* The controls over the 3D view: where to look from, colours, comparison of two shapes, parts and pose of a scan. */

import { COLOURINGS } from "./colouring.js";
import { make, part } from "./elements.js";
import { attempt, say } from "./notices.js";
import { post } from "./server.js";

export function startToolbar(stage) {
  const presets = [...part("presets").children];
  const press = chosen => presets.forEach(button => button.setAttribute("aria-pressed", String(button === chosen)));
  for (const button of presets) button.addEventListener("click", () => stage.lookFrom(button.dataset.view));
  stage.addEventListener("look", event => press(presets.find(button => button.dataset.view === event.detail)));
  let place = null;  // of the camera, where a drag began; a click leaves it there
  stage.view.controls?.addEventListener("start", () => { place = stage.view.camera.position.clone(); });
  stage.view.controls?.addEventListener("change", () => { if (place && !place.equals(stage.view.camera.position)) press(null); });

  part("colouring").addEventListener("change", event => stage.setColouring(event.target.value));
  part("keep").addEventListener("click", () => attempt(async () => {
    await post("api/kept", { shape: stage.shape.spec });  // for tables: an edit or a patient may be another one by then
    stage.keep();
    say(`Kept for comparison: ${stage.kept.label}. Change the shape and compare.`);
  }));
  part("forget").addEventListener("click", () => { stage.forget(); say("The kept shape is forgotten."); part("keep").focus(); });
  part("layout").addEventListener("change", event => stage.setLayout(event.target.value));
  part("scan-show").addEventListener("change", event => stage.showResult(stage.scan.result, event.target.value));
  for (const button of part("turning").children) button.addEventListener("click", () => stage.turnScan(button.dataset.turn));

  function refresh() {
    const shape = stage.showing === "shape", names = stage.colourings();
    part("colouring-label").hidden = !shape;
    part("colouring").replaceChildren(...names.map(name => make("option", { value: name, selected: name === stage.colouring },
      COLOURINGS[name].label)));
    part("comparison").hidden = !shape;
    part("keep").textContent = stage.kept ? "Keep this one" : "Keep to compare";
    part("forget").hidden = part("layout-label").hidden = !stage.kept;
    part("layout").value = stage.layout;
    part("scan-show-label").hidden = shape || !stage.scan?.result;
    part("scan-show").value = stage.scanParts;
    part("turning").hidden = shape || !stage.scan;
  }
  stage.addEventListener("change", refresh);
  refresh();
}
