/* The explorer's page: starts it, switches tabs, and holds what the tabs share. */

import { startCases } from "./cases.js";
import { startCompareTab } from "./compare_tab.js";
import { startEditingTab } from "./editing_tab.js";
import { make, part } from "./elements.js";
import { startFolderTab } from "./folder_tab.js";
import { NAMES, PAIRS, sentence } from "./figures.js";
import { startHistory } from "./history.js";
import { LANGUAGES, language, setLanguage, t, word } from "./language.js";
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

const THEME = "breastmorph-theme";
const ALIVE = 60000;  // ms: a session lives as long as its page is open
const LOCKED = ["wrong-token", "used-address"];

const page = {
  state: null, model: null, picker: null, tab: null, tabs: {},
  stage: new Stage(part("stage"), part("captions")),
  measures: new Measures(),

  /* ---- the whole state, and the page's own part of it ---- */

  /* What the server says of the session now. */
  take(state) {
    const { undone, redone, ...now } = state;
    page.stale = JSON.stringify(now.model) !== JSON.stringify(page.state.model);
    page.state = { ...page.state, ...now };
    server.setScan(now.scan);
    if (page.stale) page.measures.clear("");  // of the former model's shapes nothing is asked any more
    page.cases.describe();
    page.history.describe();
  },

  /* Show what the session holds, in the tab that is open. */
  async show(tab = page.tab) {
    if (page.stale) { await useModel(); page.tabs.model.ready(); }
    await restore(page.state.notes, tab);
  },

  async again() { page.take(await server.get("api/state")); await page.show(); },

  /* Work on another scan. */
  switchTo: key => page.cases.switchTo(key),

  /* What the page's own controls show: a step that can be undone, or part of the last one. */
  noting: Promise.resolve(),
  note(what, { joined = false } = {}) {
    if (page.restoring || !page.state) return page.noting;
    page.noting = page.noting.then(async () => {
      const notes = page.remember();
      if (JSON.stringify(notes) === JSON.stringify(page.state.notes)) return;
      page.state.notes = notes;
      await server.post("api/notes", { notes, what, joined });
    }).catch(complain);
    return page.noting;
  },
  settled: () => page.noting,

  /* Something that several tabs show has changed. */
  changed() { for (const tab of Object.values(page.tabs)) tab.refresh?.(); },

  async go(name) {
    const before = page.tab;
    page.tab = name;
    if (before !== name) await page.tabs[before]?.leave?.();
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

  /* Somebody was registered or fitted: nothing of what was there before is about her. */
  async setPatient(patient) {
    page.take(await server.get("api/state"));
    if (patient && page.state.patient?.scan !== patient.scan) { page.changed(); return; }  // another scan is worked on by now
    await page.stage.setKept(page.state.kept);
    page.tabs.missing.forget();
    page.tabs.measures.choose(patient ? "patient" : "mean");
    if (page.state.edit) page.tabs.measures.restore(editingOf(page.state.edit.asked));
    page.changed();
    await page.note("registered", { joined: true });
  },

  /* The scan whose landmarks can be saved. */
  openScan() {
    const open = [page.tabs.scan.state(), page.tabs.folder.state()].filter(Boolean);
    return open.find(({ scan }) => scan === page.stage.scan?.key) ?? open[0];
  },

  /* Sliders, wishes, what is painted, how scans are turned; of every open scan. */
  remember() {
    const { notes, scan, cases } = page.state, before = notes?.cases ?? {};
    const mine = { editing: page.tabs.measures.remember(), missing: page.tabs.missing.remember() };
    const all = Object.fromEntries(["", ...cases.map(one => one.scan)].filter(key => before[key]).map(key => [key, before[key]]));
    return { marks: page.tabs.compare.remember(), scores: page.tabs.model.scores(), turns: { ...notes?.turns, ...page.stage.turns() }, cases: { ...all, [scan]: mine } };
  },

  async openSession(file) {
    const title = t("Opening the session");
    let found = null;
    try {
      found = await follow(title, () => server.upload(`api/session-file?name=${encodeURIComponent(file.name)}`, file));
    } finally {
      await busy(title, () => takeUp(found?.page ?? null, { always: Boolean(found) }));
    }
    say(`${t("The session is open again.")} ${found.said.map(sentence).join(" ")}`.trim());
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
        say(t("The model knows its landmarks now."));
      }) }, t("Use these landmarks"));
      box.append(done);
      page.stage.showScan(scene);
      page.measures.clear(t("Measures appear when the landmarks are set."));
      page.picker = picker;
      picker.update(state);
    });
  },
};

const TITLES = {
  register: word("Registering"), fit: word("Fitting the model to the scan"), predict: word("Predicting the breast"), check: word("Checking the scans"), build: word("Building the model"),
  propose: word("Looking for the landmarks"), sheet: word("Drawing the page"), reopen: word("Opening the session"),
};

/* Something that was started before the page was loaded again still runs. */
async function followOn(job) {
  if (job.kind === "propose") return;  // the tab that shows its scan asks again
  const before = page.tab;
  try {
    await follow(t(TITLES[job.kind] ?? word("Computing")), async () => job);
    say(t("Done."));
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
  page.take(now);
  page.stale = true;
  if (remembered?.scores) page.state.notes = remembered;  // of a session file
  await page.show(remembered?.tab === "save" ? null : remembered?.tab);  // where it was saved there is nothing to see
}

/* Bring back what a session held. */
async function restore(notes, tab = null) {
  page.restoring = true;
  try {
    const asked = page.state.edit?.asked, scores = notes?.scores ?? asked?.base.scores, mine = notes?.cases?.[page.state.scan];
    page.tabs.measures.restore(mine?.editing ?? notes?.editing ?? editingOf(asked));
    page.tabs.model.put(scores ?? []);
    page.stage.setTurns(notes?.turns ?? {});
    page.tabs.compare.restore(notes?.marks);
    await page.tabs.scan.restore();
    await page.tabs.missing.restore(mine?.missing);
    await page.stage.setKept(page.state.kept);
    await page.tabs.folder.restore();
    page.changed();
  } finally {
    page.restoring = false;
  }
  await page.go(tab ?? (page.state.scan ? "scan" : page.state.folders ? "folder" : "model"));
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

/* Light or dark: as the computer is set, until somebody chooses. */
function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const theme = localStorage.getItem(THEME) ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    part("theme").setAttribute("aria-pressed", String(theme === "dark"));
    page.stage.view.setGround(getComputedStyle(document.documentElement).getPropertyValue("--bv-ground"));
  };
  dark.addEventListener("change", show);
  part("theme").addEventListener("click", () => {
    localStorage.setItem(THEME, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  show();
  part("language").replaceChildren(...Object.entries(LANGUAGES).map(([code, name]) => make("option", { value: code, lang: code }, name)));
  part("language").value = language;
  part("language").addEventListener("change", event => setLanguage(event.target.value));
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
  page.stage.onClick = event => { if (!page.tabs.compare.click(event)) page.picker?.pick(event.clientX, event.clientY); };
  // Without a mouse: turn the view with the arrow keys until the crosshair is right, then press Enter.
  page.stage.view.canvas?.addEventListener("keydown", event => {
    if (event.key === "Enter" && page.picker) { event.preventDefault(); page.picker.pick(...page.stage.centre()); }
  });
}

async function start() {
  startTheme();
  startTabs();
  startToolbar(page);
  page.cases = startCases(page);
  page.history = startHistory(page);
  let drawing = 0;
  page.stage.addEventListener("change", () => { clearTimeout(drawing); drawing = setTimeout(() => page.cases.takePicture(), 600); });
  startPicking();
  page.tabs = {
    model: startModelTab(page), measures: startEditingTab(page), scan: startScanTab(page),
    folder: startFolderTab(page), missing: startMissingTab(page), compare: startCompareTab(page), save: startSaveTab(page),
  };
  page.state = await server.start();
  server.setScan(page.state.scan);
  Object.assign(NAMES, page.state.measure_names);
  Object.assign(PAIRS, page.state.pair_names);
  page.go(page.state.folders ? "folder" : "model");
  page.state.model = await modelReady();
  await useModel();
  page.tabs.model.ready();
  part("veil").hidden = true;
  page.cases.describe();
  page.history.describe();
  await restore(page.state.notes);
  document.body.dataset.ready = "true";
  say(t("Ready."));
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
  part("veil").firstElementChild.textContent = t("There is no model to show.");
  complain(error);
});
