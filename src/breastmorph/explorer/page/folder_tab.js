/* The tab "Folder of scans": landmarks on many scans, one after the other, then check and register. */

import { make } from "./figures.js";
import { attempt, busy, runJob, say } from "./notices.js";
import { Picker } from "./picking.js";
import { loadScan } from "./raw_scan.js";
import { get, post } from "./server.js";

const WORDS = { todo: "to do", started: "started", done: "done" };
const SIGNS = { todo: "\u25CB", started: "\u25D0", done: "\u2713" };
const part = id => document.getElementById(id);

export function startFolderTab(page) {
  let queue = null, at = 0, scene = null, state = null;
  const picker = new Picker(part("folder-picker"), page, next => { state = next; follow(); });

  /* The row of the open scan follows its landmarks without asking the server. */
  function follow() {
    const row = queue.scans[at], count = Object.keys(state.landmarks).length;
    row.landmarks = count;
    row.status = state.complete ? "done" : count ? "started" : "todo";
    row.absent_side = state.absent_side;
    describe();
  }

  function describe() {
    const done = queue.scans.filter(row => row.status === "done").length, total = queue.scans.length;
    part("folder-progress").textContent = `${queue.folder}: ${done} of ${total} scans have all points`;
    part("folder-bar").setAttribute("aria-valuenow", String(Math.round(100 * done / Math.max(total, 1))));
    part("folder-bar").firstElementChild.style.width = `${100 * done / Math.max(total, 1)}%`;
    part("folder-scan").replaceChildren(...queue.scans.map((row, k) => make("option", { value: k, selected: k === at },
      `${SIGNS[row.status]} ${row.name} \u2013 ${row.problem ? "cannot be read" : row.registered ? "registered" : WORDS[row.status]}`)));
    part("folder-previous").disabled = at === 0;
    part("folder-next").disabled = at === total - 1;
    part("folder-use").disabled = !queue.scans[at]?.registered;
    part("folder-check").disabled = part("folder-register").disabled = !done;
    part("folder-register").textContent = `Register all ${done || ""}`.trim();
  }

  async function open(k) {
    at = k;
    const row = queue.scans[k];
    describe();
    await busy(`Opening ${row.name}`, async () => {
      state = await get(`api/scans/${row.scan}`);
      scene = await loadScan(state);
    });
    show();
    say(`${row.name}: ${row.status === "done" ? "all points are set" : "set the points"}.`);
  }

  function show() {
    page.stage.showScan(scene);
    page.measures.clear("Measures appear when a scan is registered.");
    page.picker = picker;
    picker.chosen = null;
    picker.update(state);
  }

  /* The next scan that still lacks points, or simply the next one. */
  function next() {
    const open_ = queue.scans.findIndex((row, k) => k > at && row.status !== "done" && !row.problem);
    return open_ >= 0 ? open_ : Math.min(at + 1, queue.scans.length - 1);
  }

  function results(title, rows) {
    part("folder-results").replaceChildren(make("h3", {}, title), make("ul", { className: "results" }, ...rows.map(({ good, name, text }) =>
      make("li", { className: good ? "good" : "bad" }, make("strong", {}, `${good ? "\u2713" : "!"} ${name}: `), text))));
  }

  part("folder-scan").addEventListener("change", event => attempt(() => open(Number(event.target.value))));
  part("folder-next").addEventListener("click", () => attempt(() => open(next())));
  part("folder-previous").addEventListener("click", () => attempt(() => open(at - 1)));
  part("folder-check").addEventListener("click", () => attempt(async () => {
    const { checks } = await runJob("Checking the scans", "api/queue/check");
    const bad = checks.filter(check => check.verdict === "refused").length;
    results(bad ? `Checked: ${bad} of ${checks.length} need attention` : `Checked: all ${checks.length} can be used`, checks.map(check => ({
      good: check.verdict !== "refused", name: check.name,
      text: [check.verdict, ...check.findings.filter(({ level }) => level !== "info").map(({ message, remedy }) => [message, remedy].filter(Boolean).join(" "))].join(". ") })));
    say("Checked.");
  }));
  part("folder-register").addEventListener("click", () => attempt(async () => {
    const { registered } = await runJob("Registering the scans", "api/queue/register");
    queue = await get("api/queue");
    describe();
    const good = registered.filter(({ error }) => !error).length;
    results(`Registered: ${good} of ${registered.length}`, registered.map(({ name, error }) => ({
      good: !error, name, text: error ? [error.cause, error.remedy].filter(Boolean).join(". ") : "registered" })));
    say(`Registered ${good} of ${registered.length}.`);
  }));
  part("folder-use").addEventListener("click", () => attempt(async () => {
    await page.setPatient(await post(`api/scans/${queue.scans[at].scan}/use`));
    await page.tabs.scan.open(await get(`api/scans/${queue.scans[at].scan}`));
  }));

  return {
    async enter() {
      part("folder-empty").hidden = page.state.queue;
      part("folder-body").hidden = !page.state.queue;
      if (!page.state.queue) { page.showDefault(); return; }
      if (scene) { show(); return; }
      queue = await get("api/queue");
      const first = queue.scans.findIndex(row => row.status !== "done" && !row.problem);
      await open(Math.max(first, 0));
    },
    refresh() {},
    state: () => state,
  };
}
