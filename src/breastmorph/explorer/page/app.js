/* The explorer's page: starts it, switches tabs, and holds what the tabs share. */

import { startEditingTab } from "./editing_tab.js";
import { make, part } from "./elements.js";
import { startFolderTab } from "./folder_tab.js";
import { NAMES, PAIRS, sentence } from "./figures.js";
import { Measures } from "./measures.js";
import { startMissingTab } from "./missing_tab.js";
import { startModelTab } from "./model_tab.js";
import { attempt, busy, complain, follow, say } from "./notices.js";
import { Picker, startDragging } from "./picking.js";
import { loadScan } from "./raw_scan.js";
import { startSaveTab } from "./save_tab.js";
import { startScanTab } from "./scan_tab.js";
import * as server from "./server.js";
import { loadMaps, loadModel } from "./shapes.js";
import { Stage } from "./stage.js";
import { startToolbar } from "./toolbar.js";

const ALIVE = 60000;  // ms: a session lives as long as its page is open
const LOCKED = ["wrong-token", "used-address"];

const page = {
  state: null, model: null, picker: null, tab: null, tabs: {},
  stage: new Stage(part("stage"), part("captions")),
  measures: new Measures(),

  /* Something that several tabs show has changed. */
  changed() { for (const tab of Object.values(page.tabs)) tab.refresh?.(); },

  async go(name) {
    const before = page.tab;
    page.tab = name;
    if (before !== name) page.tabs[before]?.leave?.();
    for (const tab of part("tabs").children) {
      const chosen = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      part(`panel-${tab.dataset.tab}`).hidden = !chosen;
    }
    part("panels").scrollTop = 0;
    page.picker = null;
    part("stage").classList.remove("picking");
    if (before && before !== name) say("");  // it was about the other tab
    await attempt(async () => { if (page.model) await page.tabs[name].enter?.(); });
  },

  /* A tab that has nothing of its own shows what was there, or the model's shape. */
  showDefault() {
    if (page.stage.showing === "shape" && page.stage.shape) return;
    const shape = page.tabs.model.shape();
    page.stage.show(shape);
    page.measures.follow(shape.spec);
  },

  async setPatient(patient) {
    await page.tabs.missing.forget();
    if (page.state.edit) await server.remove("api/edit");
    page.state.patient = patient;
    page.state.edit = null;
    page.tabs.measures.choose(patient ? "patient" : "mean");
    page.changed();
  },

  /* The scan whose landmarks can be saved. */
  openScan() {
    const open = [page.tabs.scan.state(), page.tabs.folder.state()].filter(Boolean);
    return open.find(({ scan }) => scan === page.stage.scan?.key) ?? open[0];
  },

  remember: () => ({ tab: page.tab, scores: page.tabs.model.scores(), editing: page.tabs.measures.remember() }),

  async openSession(file) {
    const title = "Opening the session";
    let found = null;
    try {
      found = await follow(title, () => server.upload(`api/session-file?name=${encodeURIComponent(file.name)}`, file));
    } finally {
      await busy(title, () => takeUp(found?.page ?? null, { always: Boolean(found) }));
    }
    say(`The session is open again. ${found.said ? sentence(found.said) : ""}`.trim());
  },

  /* A model of somebody else: its landmarks are picked once on its mean. */
  async pickOnMean() {
    await attempt(async () => {
      const state = await server.get("api/scans/mean"), scene = await loadScan(state), box = part("model-landmarks");
      box.replaceChildren();
      const picker = new Picker(box, page, next => { done.disabled = !next.complete; });
      const done = make("button", { className: "primary wide", onclick: () => attempt(async () => {
        page.state.model = await server.post("api/model/landmarks");
        await useModel();
        await page.setPatient(page.state.patient);  // what was computed with the old landmarks is gone
        page.tabs.model.landmarksChanged();
        page.picker = null;
        page.tabs.model.enter();
        say("The model knows its landmarks now.");
      }) }, "Use these landmarks");
      box.append(done);
      page.stage.showScan(scene);
      page.measures.clear("Measures appear when the landmarks are set.");
      page.picker = picker;
      picker.update(state);
    });
  },
};

const TITLES = {
  register: "Registering", fit: "Fitting the model to the scan", predict: "Predicting the breast", check: "Checking the scans",
  propose: "Looking for the landmarks", sheet: "Drawing the page", reopen: "Opening the session",
};

/* Something that was started before the page was loaded again still runs. */
async function followOn(job) {
  if (job.kind === "propose") return;  // the tab that shows its scan asks again
  const before = page.tab;
  try {
    await follow(TITLES[job.kind] ?? "Computing", async () => job);
    say("Done.");
  } finally {
    await page.tabs.folder.again();
    await takeUp({ tab: before });
  }
}

/* Show what the server has by now; without `always` only where somebody else is the patient, or other results are
   there: nothing of the ones before may stand beside them. */
async function takeUp(remembered, { always = false } = {}) {
  const now = await server.get("api/state"), about = ({ patient, edit, prediction }) => JSON.stringify([patient, edit, prediction]);
  if (!always && about(now) === about(page.state)) return;
  page.state = { ...page.state, ...now };
  await useModel();
  page.tabs.model.landmarksChanged();
  await restore(remembered);
}

/* Bring back what a session held. */
async function restore(remembered) {
  if (page.stage.kept) page.stage.forget();
  const asked = page.state.edit?.asked, scores = remembered?.scores ?? asked?.base.scores;
  page.tabs.measures.restore(remembered?.editing ?? editingOf(asked));
  if (scores) page.tabs.model.set(scores);
  await page.tabs.scan.restore();
  await page.tabs.missing.restore();
  page.changed();
  const tab = remembered?.tab === "save" ? null : remembered?.tab;  // where it was saved there is nothing to see
  await page.go(tab ?? (page.state.scan ? "scan" : page.state.queue ? "folder" : "model"));
}

/* What was set in the tab of measures, from the request for an edit. */
function editingOf(asked) {
  if (!asked) return null;
  const said = side => asked.hold_other ? null : asked.hold.includes(side);
  return { base: asked.base.kind, wishes: asked.wishes.map(({ name, value }) => [name, value]), holds: { left: said("left"), right: said("right") } };
}

async function modelReady() {
  for (;;) {
    const state = await server.get("api/model");
    if (state.status === "ready") return state;
    if (state.status === "failed") throw new server.Refusal(state.error);
    await new Promise(done => setTimeout(done, 200));
  }
}

/* The shape first: it is what people wait for. Colours of the whole model follow. */
async function useModel() {
  const model = page.model = page.stage.model = await loadModel();
  loadMaps().then(maps => { model.maps = maps; page.stage.dispatchEvent(new Event("change")); }).catch(complain);
}

function startTabs() {
  const buttons = [...part("tabs").children];
  for (const button of buttons) button.addEventListener("click", () => page.go(button.dataset.tab));
  part("tabs").addEventListener("keydown", event => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    page.go(next.dataset.tab);
  });
}

function startPicking() {
  // The crosshair is for the keyboard only; a mouse has its own.
  addEventListener("keydown", () => document.body.classList.add("by-keyboard"), { capture: true });
  addEventListener("pointerdown", () => document.body.classList.remove("by-keyboard"), { capture: true });
  startDragging(page);
  page.stage.onClick = event => page.picker?.pick(event.clientX, event.clientY);
  // Without a mouse: turn the view with the arrow keys until the crosshair is right, then press Enter.
  page.stage.view.canvas?.addEventListener("keydown", event => {
    if (event.key === "Enter" && page.picker) { event.preventDefault(); page.picker.pick(...page.stage.centre()); }
  });
}

async function start() {
  startTabs();
  startToolbar(page.stage);
  startPicking();
  page.tabs = {
    model: startModelTab(page), measures: startEditingTab(page), scan: startScanTab(page),
    folder: startFolderTab(page), missing: startMissingTab(page), save: startSaveTab(page),
  };
  page.state = await server.start();
  Object.assign(NAMES, page.state.measure_names);
  Object.assign(PAIRS, page.state.pair_names);
  page.go(page.state.queue ? "folder" : "model");
  page.state.model = await modelReady();
  await useModel();
  page.tabs.model.ready();
  part("veil").hidden = true;
  await restore(null);
  document.body.dataset.ready = "true";
  say("Ready.");
  // What a tab held may be gone when others needed its place: then it says so, and not only at the next click.
  setInterval(() => server.get("api/model").catch(error => { if (error.code === "no-session") complain(error); }), ALIVE);
  if (page.state.job) await attempt(() => followOn(page.state.job));
}

/* Nothing of the page is of use to whoever was not let in. */
function showLocked({ cause, remedy }) {
  part("locked-cause").textContent = sentence(cause);
  part("locked-remedy").textContent = sentence(remedy);
  part("locked").hidden = false;
  document.querySelector("main").hidden = true;
  part("model-name").hidden = true;
}

window.explorer = page;  // for the console and the tests
start().catch(error => {
  if (LOCKED.includes(error.code)) { showLocked(error); return; }
  part("veil").firstElementChild.textContent = "There is no model to show.";
  complain(error);
});
