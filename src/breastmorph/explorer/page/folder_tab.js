/* The tab "Folder of scans": landmarks on many scans, one after the other, then check and register. */

import { count, decimal, t, whole, word } from "./language.js";
import { make, part } from "./elements.js";
import { sentence, sentences } from "./figures.js";
import { attempt, busy, runJob, say } from "./notices.js";
import { Picker } from "./picking.js";
import { loadScan } from "./raw_scan.js";
import { get, post } from "./server.js";

const LOOKING = 2000;  // ms between two looks at what was proposed meanwhile
const WORDS = { todo: t("to do"), proposed: t("proposed, no doubt"), started: t("started"), done: t("all points set"), unreadable: t("unreadable") };
const SIGNS = { todo: "\u25CB", proposed: "\u25CC", doubt: "?", started: "\u25D0", done: "\u2713", unreadable: "\u2715" };
const UNUSUAL = {  // figures of quality that are unusual among the scans of the folder
  distance_inside: word("the breasts lie farther from the scan than usual"), distance_outside: word("the chest lies farther from the scan than usual"),
  overlap: word("the scan shows less of the torso than usual"), angle_distortion: word("the skin is distorted more than usual"),
  flipped_percent: word("the skin is folded"), smallest_area_ratio: word("the skin is pressed together in one place"),
  residual_nipple_left: word("the left nipple lies off its landmark"), residual_nipple_right: word("the right nipple lies off its landmark"),
};
const VERDICTS = { refused: t("refused by the check"), usable: t("usable"), repaired: t("usable after repair") };

export function startFolderTab(page) {
  let queue = null, at = 0, scene = null, state = null, opening = 0;
  const picker = new Picker(part("folder-picker"), page, next => { state = next; follow(); }, {
    label: t("Confirm, next scan"), then: () => { if (state?.confirmed && next() !== at) attempt(() => open(next())); } });
  const canBeUsed = row => row.status !== "unreadable" && !row.problem;

  /* One scan in words, for the list. */
  function words(row) {
    if (row.status === "unreadable") return WORDS.unreadable;
    if (row.problem) return t("its landmark file cannot be read");
    if (row.doubt) return row.status === "todo" ? t("nothing found: set by hand") : count(row.doubt, "1 point in doubt", "{n} points in doubt");
    return row.verdict === "refused" ? VERDICTS.refused : row.registered ? t("registered") : VERDICTS[row.verdict] ?? WORDS[row.status];
  }

  /* The row of the open scan follows its landmarks without asking the server. */
  function follow() {
    const row = queue.scans.find(({ scan }) => scan === state.scan), count = Object.keys(state.landmarks).length;
    if (!row) return;
    if (row.points !== undefined && row.points !== JSON.stringify(state.landmarks)) row.verdict = "";  // it was about other points
    row.points = JSON.stringify(state.landmarks);
    const found = Object.values(state.found), lacking = page.state.picking.filter(({ name, optional, side }) => !optional
      && side !== state.absent_side && !(name in state.landmarks)).length;
    row.status = state.complete && state.confirmed ? "done" : found.length && !state.confirmed ? "proposed" : count ? "started" : "todo";
    row.doubt = found.length ? found.filter(({ doubtful }) => doubtful).length + lacking : row.status === "todo" ? row.doubt : 0;
    describe();
  }

  /* What the server has by now; the scan that is open stays. */
  async function refresh() {
    const open_ = queue.scans[at]?.scan;
    queue = await get("api/queue");
    at = Math.max(queue.scans.findIndex(({ scan }) => scan === open_), 0);
    if (state) follow();
    else describe();
  }

  /* While the program works through the folder the list follows, as long as somebody can see it. */
  async function watch() {
    for (;;) {
      await new Promise(done => setTimeout(done, LOOKING));
      if (queue?.proposing?.state === "running" && page.tab === "folder" && !document.hidden) await refresh().catch(() => {});
    }
  }

  function describeProposals() {
    const { state: now, left } = queue.proposing ?? { state: "done" }, sure = queue.scans.filter(row => row.status === "proposed" && !row.doubt).length;
    part("folder-proposing").hidden = now === "done";
    part("folder-proposing-text").textContent = now === "running" ? t`Looking for landmarks in the background. Scans left: ${left}.`
      : t`Stopped looking for landmarks. Scans left: ${left}.`;
    part("folder-proposing-stop").textContent = now === "running" ? t("Stop") : t("Go on");
    part("folder-accept").hidden = !sure;
    part("folder-accept").textContent = sure === 1 ? t("Confirm the one scan without doubt") : t`Confirm all ${sure} scans without doubt`;
  }

  function describe() {
    const done = queue.scans.filter(row => row.status === "done").length, total = queue.scans.length;
    part("folder-progress").textContent = t`${queue.folder}: ${done} of ${total} scans have all points`;
    part("folder-bar").setAttribute("aria-valuenow", String(Math.round(100 * done / Math.max(total, 1))));
    part("folder-bar").firstElementChild.style.width = `${100 * done / Math.max(total, 1)}%`;
    part("folder-scan").replaceChildren(...queue.scans.map((row, k) => make("option", { value: k, selected: k === at },
      `${canBeUsed(row) && row.verdict !== "refused" ? SIGNS[row.doubt ? "doubt" : row.status] : SIGNS.unreadable} ${row.name} \u2013 ${words(row)}`)));
    part("folder-where").textContent = t`Points are saved in ${queue.folder}/landmarks, results of Register all in ${queue.results}.`;
    describeProposals();
    part("folder-next").classList.toggle("primary", !state || state.confirmed);
    part("folder-previous").disabled = at === 0;
    part("folder-next").disabled = at === total - 1;
    part("folder-use").disabled = !queue.scans[at]?.registered;
    part("folder-check").disabled = !queue.scans.some(row => !["todo", "proposed"].includes(row.status) || row.problem);
    part("folder-register").disabled = !done;
    part("folder-register").textContent = done ? t`Register all ${done}` : t("Register all");
  }

  async function open(k) {
    const row = queue.scans[k], mine = opening += 1;
    at = k;
    close();
    describe();
    try {
      await busy(t`Opening ${row.name}`, async () => {
        const next = await get(`api/scans/${row.scan}`), shown = await loadScan(next);
        if (mine !== opening) return;  // another scan was chosen meanwhile
        [state, scene] = [next, shown];
        if (row.status === "unreadable") [row.status, row.problem] = ["todo", ""];  // exported again
      });
    } catch (error) {
      if (mine !== opening) return;
      [row.status, row.problem] = ["unreadable", error.cause ?? t("It cannot be opened")];
      describe();
      say(t`${row.name} cannot be opened.`);
      throw error;
    }
    if (mine !== opening) return;
    if (page.tab === "folder") show();
    say(`${row.name}: ${row.status === "done" ? t("all points are set") : row.status === "proposed" ? t("look at the points") : t("set the points")}.`);
    await picker.propose();
  }

  /* The scan that was open goes first: no click may land on it while the list names another one. */
  function close() {
    state = scene = null;
    picker.close();
    page.stage.clearScan();
    page.measures.clear(t("No scan is shown."));
  }

  function show() {
    page.stage.showScan(scene);
    page.measures.clear(t("Measures appear when a scan is registered."));
    page.picker = picker;
    picker.chosen = null;
    picker.update(state);
  }

  /* The next scan in doubt, the next one that still lacks points, or simply the next one. */
  function next() {
    const inDoubt = queue.scans.map((row, k) => k).filter(k => k !== at && queue.scans[k].doubt && canBeUsed(queue.scans[k]));
    if (inDoubt.length) return inDoubt.find(k => k > at) ?? inDoubt[0];
    const open_ = queue.scans.findIndex((row, k) => k > at && row.status !== "done" && canBeUsed(row));
    return open_ >= 0 ? open_ : Math.min(at + 1, queue.scans.length - 1);
  }

  /* ---- which folder is open ---- */

  async function choices() {
    const { folders } = await get("api/folders");
    part("folder-choice-label").hidden = folders.length < 2 && page.state.queue;
    part("folder-choice").replaceChildren(...page.state.queue ? [] : [make("option", { value: "" }, t("Choose a folder"))],
      ...folders.map(one => make("option", { value: one.folder, selected: one.open }, `${one.name} \u2013 ${count(one.scans, "1 scan", "{n} scans")}`)));
  }
  part("folder-choice").addEventListener("change", event => attempt(async () => {
    const folder = event.target.value;
    if (!folder) return;
    opening += 1;
    close();
    queue = await busy(t("Opening the folder"), () => post("api/folders", { folder }));
    page.state.queue = true;
    part("folder-results").replaceChildren();
    await api.enter(true);
  }));

  /* ---- how good the registrations are, and a model of them ---- */

  async function showQuality() {
    const { rows } = queue.scans.some(row => row.registered) ? await get("api/queue/quality") : { rows: [] };
    const good = rows.filter(row => !row.failed && !row.absent_side).length, number = (value, digits) => value === null || value === undefined ? "\u2013" : decimal(value, digits);
    part("folder-quality").hidden = !rows.length;
    part("folder-build").disabled = good < 2;
    part("folder-build").textContent = count(good, "Build a model of the one registered scan", "Build a model of the {n} registered scans");
    part("quality-table").tBodies[0].replaceChildren(...rows.flatMap(({ scan, name, failed, figures, flags, absent_side: absent, warnings }) => {
      const notes = [...failed ? [sentences(failed.message, failed.remedy)] : [], ...flags.map(flag => sentence(t(UNUSUAL[flag] ?? flag))),
        ...absent ? [t("One breast is missing: not part of a model.")] : [], ...warnings.map(({ message }) => sentence(message))];
      const cells = failed ? [make("td", { colSpan: 3 }, t("refused"))]
        : [number(figures.distance_inside, 2), number(figures.distance_outside, 2), figures.overlap === null ? "\u2013" : whole(100 * figures.overlap)].map(text => make("td", {}, text));
      return [make("tr", { "data-quality": name, className: notes.length ? "noted" : "" }, make("th", { scope: "row" },
        make("button", { className: "link", onclick: () => attempt(() => open(queue.scans.findIndex(row => row.scan === scan))) }, name)), ...cells),
      ...notes.length ? [make("tr", { className: "notes" }, make("td", { colSpan: 4 }, notes.join(" ")))] : []];
    }));
  }
  part("folder-build").addEventListener("click", () => attempt(async () => {
    const { subjects, left_out: left } = await runJob(t("Building the model"), "api/queue/model");
    page.take(await get("api/state"));
    page.stale = true;
    await page.show("model");
    say([t`The model of ${subjects} subjects is shown. Save it to keep it.`, left.length ? t`Left out, with one breast: ${left.join(", ")}.` : ""].filter(Boolean).join(" "));
  }));

  function results(title, rows) {
    part("folder-results").replaceChildren(make("h3", {}, title), make("ul", { className: "results" }, ...rows.map(({ good, name, text }) =>
      make("li", { className: good ? "good" : "bad" }, make("strong", {}, `${good ? "\u2713" : "!"} ${name}: `), text))));
  }

  part("folder-scan").addEventListener("change", event => attempt(() => open(Number(event.target.value))));
  part("folder-next").addEventListener("click", () => attempt(() => open(next())));
  part("folder-previous").addEventListener("click", () => attempt(() => open(at - 1)));
  part("folder-check").addEventListener("click", () => attempt(async () => {
    const { checks } = await runJob(t("Checking the scans"), "api/queue/check");
    const bad = checks.filter(check => check.verdict === "refused").length;
    results(bad ? t`Checked: ${bad} of ${checks.length} need attention` : t`Checked: all ${checks.length} can be used`, checks.map(check => ({
      good: check.verdict !== "refused", name: check.name,
      text: [VERDICTS[check.verdict] ?? check.verdict, ...check.findings.filter(({ level }) => level !== "info").map(({ message, remedy }) => sentences(message, remedy))].map(sentence).join(" ") })));
    await refresh();
    say(bad ? t`Checked: ${bad} of ${checks.length} cannot be used.` : t("Checked: all can be used."));
  }));
  part("folder-register").addEventListener("click", () => attempt(async () => {
    const { registered } = await runJob(t("Registering the scans"), "api/queue/register");
    await refresh();
    const good = registered.filter(({ error }) => !error).length;
    results(t`Registered: ${good} of ${registered.length}`, registered.map(({ name, error }) => ({
      good: !error, name, text: error ? sentences(error.cause, error.remedy) : t("registered") })));
    await showQuality();
    say(t`Registered ${good} of ${registered.length}.`);
  }));
  part("folder-use").addEventListener("click", () => attempt(async () => {
    const { scan } = queue.scans[at];
    await page.setPatient(await post(`api/scans/${scan}/use`));
    await page.tabs.scan.open(await get(`api/scans/${scan}`));
  }));

  part("folder-proposing-stop").addEventListener("click", () => attempt(async () => {
    await post("api/queue/propose", { on: queue.proposing.state !== "running" });
    await refresh();
  }));
  part("folder-accept").addEventListener("click", () => attempt(async () => {
    const { accepted } = await post("api/queue/accept");
    if (state) picker.update(state = await get(`api/scans/${state.scan}`));
    await refresh();
    say(count(accepted, "1 scan is confirmed and saved.", "{n} scans are confirmed and saved."));
  }));
  watch();

  const api = {
    async enter(other = false) {
      part("folder-empty").hidden = page.state.queue;
      part("folder-start").hidden = page.state.folders;
      part("folder-body").hidden = !page.state.queue;
      if (page.state.folders) await choices();
      if (!page.state.queue) { page.showDefault(); return; }
      if (scene) { show(); return; }
      if (queue && !other) { page.stage.clearScan(); page.measures.clear(t("No scan is shown.")); return; }  // it cannot be read, or is still opening
      queue ??= await get("api/queue");
      await showQuality();
      const first = queue.scans.findIndex(row => row.status !== "done" && canBeUsed(row));
      await open(Math.max(first, 0));
    },
    /* Landmarks may be other ones after a step was undone. */
    async restore() {
      if (!queue || !state) return;
      state = await get(`api/scans/${state.scan}`);
      await refresh();
    },
    async again() { if (queue) await refresh(); },
    state: () => state,
  };
  return api;
}
