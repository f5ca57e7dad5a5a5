/* Undo and redo of every step, the list of shortcuts, and the question before unsaved work is left. */

import { make, part } from "./elements.js";
import { t, word } from "./language.js";
import { attempt, say } from "./notices.js";
import { get, onChange, post } from "./server.js";

const SAVED = "breastmorph-saved";
const STEPS = {
  open: word("a scan was opened"), remove: word("a scan was removed"), rename: word("name and visit"), points: word("landmarks"), propose: word("proposed landmarks"),
  registered: word("registration"), fitted: word("fit"), predict: word("prediction"), edit: word("measures"), keep: word("shape to compare"), "model-landmarks": word("landmarks of the model"), model: word("model of the folder"),
  sliders: word("sliders of the model"), start: word("start of editing"), hold: word("what is held"), paint: word("painted region"), choice: word("what is missing"),
  alternatives: word("alternatives"), pose: word("pose of the scan"), mark: word("ruler or note"), known: word("known measures"),
};
const KEYS = [
  [word("Ctrl+Z"), word("Undo")], [word("Ctrl+Shift+Z"), word("Redo")], [word("?"), word("This list")], [word("Tab"), word("Next control")],
  [word("Arrow keys in the picture"), word("Turn the body")], [word("Shift + arrow keys in the picture"), word("Move the picture")], [word("+ and \u2212 in the picture"), word("Zoom")],
  [word("Home in the picture"), word("Front view")], [word("Enter in the picture"), word("Set the point under the ring")], [word("Double click on a slider"), word("Back to 0")],
  [word("Arrow keys on the split"), word("Move the split")],
];

export function startHistory(page) {
  let waiting = null;
  const what = step => t(STEPS[step] ?? step);

  function describe() {
    const { undo, redo } = page.state.history;
    for (const [id, step, words] of [["undo", undo, t("Undo")], ["redo", redo, t("Redo")]]) {
      part(id).disabled = !step;
      part(id).setAttribute("aria-label", step ? `${words}: ${what(step)}` : words);
    }
    guard();
  }

  const travel = (path, words) => attempt(async () => {
    if (page.travelling) return;
    page.travelling = true;
    try {
      await page.settled();
      const state = await post(path);
      page.take(state);
      await page.show();
      say(`${words}: ${what(state.undone ?? state.redone)}.`);
    } finally {
      page.travelling = false;
    }
  });
  const undo = () => page.state.history.undo ? travel("api/undo", t("Undone")) : say(t("There is nothing to undo."));
  const redo = () => page.state.history.redo ? travel("api/redo", t("Done again")) : say(t("There is nothing to do again."));
  part("undo").addEventListener("click", undo);
  part("redo").addEventListener("click", redo);

  /* Whatever was changed on the server may be undone, and may change the list of scans. */
  async function look() {
    waiting = null;
    try {
      Object.assign(page.state, await get("api/cases"));
    } catch { return; }
    describe();
    page.cases.describe();
  }
  onChange(() => { if (page.state) waiting ??= setTimeout(look, 60); });

  const writes = target => target.matches?.("input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea") ?? false;
  addEventListener("keydown", event => {
    const ctrl = event.ctrlKey || event.metaKey, key = event.key.toLowerCase();
    if (writes(event.target) || document.querySelector("dialog[open]")) return;
    if (ctrl && key === "z") { event.preventDefault(); if (event.shiftKey) redo(); else undo(); }
    else if (ctrl && key === "y") { event.preventDefault(); redo(); }
    else if (event.key === "?") { event.preventDefault(); part("shortcuts").showModal(); }
  });
  part("shortcuts-table").tBodies[0].replaceChildren(...KEYS.map(([keys, words]) => make("tr", {}, make("th", { scope: "row" }, t(keys)), make("td", {}, t(words)))));
  part("help").addEventListener("click", () => part("shortcuts").showModal());
  part("shortcuts-close").addEventListener("click", () => part("shortcuts").close());

  const unsaved = () => page.state && (page.state.cases.length || page.state.edit)
    && String(page.state.history.revision) !== (sessionStorage.getItem(SAVED) ?? "0");
  // Only while there is something to lose: a page that listens always is closed less cleanly by browsers.
  const ask = event => event.preventDefault();
  function guard() {
    if (unsaved()) addEventListener("beforeunload", ask);
    else removeEventListener("beforeunload", ask);
  }

  return { describe, look, undo, redo, unsaved, saved() { sessionStorage.setItem(SAVED, String(page.state.history.revision)); guard(); } };
}
