/* The tab "Patient's scan": a scan comes in, gets its landmarks, is registered or fitted. */

import { make, part } from "./elements.js";
import { sentence } from "./figures.js";
import { decimal, t, whole } from "./language.js";
import { attempt, busy, runJob, say } from "./notices.js";
import { Picker } from "./picking.js";
import { dropScans, loadResult, loadScan } from "./raw_scan.js";
import { get, post, Refusal, remove, upload } from "./server.js";

const COMPANIONS = [".mtl", ".bin", ".png", ".jpg", ".jpeg"];
const stem = name => name.slice(0, name.lastIndexOf(".")).toLowerCase();
const ending = name => name.slice(name.lastIndexOf(".")).toLowerCase();

export function startScanTab(page) {
  let state = null, scene = null, awaiting = false;  // a landmark file that comes with the scan
  const picker = new Picker(part("scan-picker"), page, next => { state = next; describe(); });

  /* What was dropped or chosen: [{mesh, landmarks, companions}], one for each scan; landmarks alone; a session. */
  function sort(files) {
    const { mesh_suffixes: meshes, landmark_suffixes: landmarks, upload_mb: most } = page.state;
    const found = { scans: [], landmarks: [], companions: [], session: null };
    for (const file of files) {
      const kind = ending(file.name);
      if (file.size > most * 2 ** 20) {
        throw new Refusal({ cause: t("The file {name} is larger than {most} MB", { name: file.name, most }), remedy: t("Reduce the scan, for example to 500,000 triangles.") });
      }
      if (kind === ".zip") found.session = file;
      else if (COMPANIONS.includes(kind)) found.companions.push(file);
      else if (meshes.includes(kind)) found.scans.push({ mesh: file, landmarks: null, companions: [] });
      else if (landmarks.some(suffix => file.name.toLowerCase().endsWith(suffix))) found.landmarks.push(file);
      else throw new Refusal({ cause: t("The file {name} is not a scan that can be read", file), remedy: t("Use one of {kinds}.", { kinds: meshes.join(", ") }) });
    }
    // Of several scans each gets what is called as it is; a single one gets all.
    const owner = file => found.scans.length === 1 ? found.scans[0]
      : found.scans.filter(({ mesh }) => file.name.toLowerCase().startsWith(stem(mesh.name))).sort((a, b) => b.mesh.name.length - a.mesh.name.length)[0];
    for (const file of found.companions) (owner(file)?.companions ?? []).push(file);
    for (const file of found.landmarks) if (owner(file)) owner(file).landmarks = file;
    return found;
  }

  /* Files that were dropped or chosen: scans, their textures and landmarks, or a session. */
  async function take(files) {
    const { scans, landmarks, session } = sort(files);
    if (session) { await page.openSession(session); return; }
    if (!scans.length && landmarks.length && state) { await picker.readFile(landmarks[0]); return; }
    if (!scans.length) throw new Refusal({ cause: t("There is no 3D scan among these files"), remedy: t("A scan ends in {kinds}.", { kinds: page.state.mesh_suffixes.join(", ") }) });
    for (const one of scans) await takeOne(one);
    say(scans.length > 1 ? t("{n} scans are loaded.", { n: scans.length }) : t("{name} is loaded.", scans[0].mesh));
  }

  async function takeOne({ mesh, landmarks, companions }) {
    awaiting = Boolean(landmarks);
    await busy(t("Reading {name}", mesh), async () => {
      const ids = [];
      for (const file of companions) ids.push((await upload(`api/files?name=${encodeURIComponent(file.name)}`, file)).file);
      const path = `api/scans?name=${encodeURIComponent(mesh.name)}${ids.length ? `&with=${ids.join(",")}` : ""}`;
      await open(await upload(path, mesh));
      if (landmarks) await picker.readFile(landmarks);
    }).finally(() => { awaiting = false; });
  }

  /* A scan is open once all of it is here: what is shown and what is marked must be the same. */
  async function open(next) {
    page.take(await get("api/state"));
    dropScans([...page.state.cases.map(({ scan }) => scan), next.scan]);
    await page.show("scan");
  }

  async function load(next) {
    const shown = await loadScan(next);
    shown.result = next.has_result && page.state.patient?.scan === next.scan ? await loadResult(next.scan) : null;
    return shown;
  }

  function show() {
    if (!scene) { page.showDefault(); return; }
    page.stage.showScan(scene);
    if (scene.result) {
      page.stage.showResult(scene.result, "result");
      page.stage.view.fit();
    }
    if (isPatient()) page.measures.follow({ kind: "patient" });
    else page.measures.clear(t("Measures appear when the scan is registered or fitted."));
    picker.update(state);
    page.picker = picker;
  }

  const isPatient = () => Boolean(state) && page.state.patient?.scan === state.scan;

  function describe() {
    part("scan-body").hidden = !state;
    part("scan-drop").classList.toggle("compact", Boolean(state));
    part("scan-drop-text").textContent = state ? t("Another scan, or a landmark file: drop it here")
      : t("Drop a 3D scan here, with its texture and landmark file if there are any");
    if (!state) return;
    part("scan-body").classList.toggle("complete", state.complete);
    const patient = isPatient() ? page.state.patient : null;
    const texture = !state.texture ? "" : scene?.image ? `, ${t("with texture")}` : `, ${t("its texture cannot be shown")}`;
    part("scan-about").replaceChildren(make("strong", {}, state.name), ` \u2013 ${t`${whole(state.vertices)} points`}${texture}`);
    part("scan-register").disabled = !state.complete;
    part("scan-register").classList.toggle("primary", !patient);
    part("scan-continue").textContent = patient ? t("Do it again, with other landmarks") : t("Continue");
    const proposed = !state.confirmed;
    part("scan-register").textContent = proposed ? t("Confirm the points and register") : patient ? t("Register again") : t("Register the scan");
    part("scan-register-hint").textContent = state.complete ? t("Brings the model\u2019s points onto this scan; some seconds.")
      : t("Needs the landmarks above, or a landmark file.");
    part("scan-result").hidden = !patient;
    if (patient) describePatient(patient);
    part("save-landmarks").disabled = !Object.keys(state.landmarks).length;
  }

  function describePatient(patient) {
    const { mean_mm: mean, p95_mm: most, seen } = patient.residual;
    part("scan-result").replaceChildren(
      make("div", { className: "notice good" },
        make("p", {}, make("strong", {}, patient.how === "registered" ? `${t("Registered.")} ` : `${t("Fitted.")} `),
          t`The shape lies ${decimal(mean, 1)} mm from the scan on average, ${decimal(most, 1)} mm or less on 95 % of the skin.`,
          seen < 0.995 ? ` ${t`${whole(100 * seen)} % of the shape was seen by the scanner.`}` : "")),
      make("ul", { className: "warnings" }, ...patient.warnings.map(text => make("li", {}, sentence(text)))),
      make("div", { className: "row buttons" },
        make("button", { id: "scan-measure", className: patient.absent_side ? "" : "primary", onclick: () => page.go("measures") }, t("Measure, edit")),
        patient.absent_side ? make("button", { id: "scan-predict", className: "primary", onclick: () => page.tabs.missing.predict() }, t`Predict the ${t(patient.absent_side)} breast`)
          : make("button", { id: "scan-predict", onclick: () => page.go("missing") }, t("Predict a breast"))));
  }

  const compute = (title, action) => attempt(async () => {
    const { scan } = state, patient = await runJob(title, `api/scans/${scan}/${action}`);
    await page.setPatient(patient);
    if (state?.scan === scan) {  // no other scan was opened meanwhile
      const next = await get(`api/scans/${scan}`), result = await loadResult(scan);
      if (state?.scan === scan) {
        state = next;
        scene.result = result;
        if (page.tab === "scan") show();
      }
    }
    say(t`Done: ${patient.name}. The shape lies ${decimal(patient.residual.mean_mm, 1)} mm from the scan on average.`);
  });

  part("scan-choose").addEventListener("click", () => part("scan-files").click());
  part("scan-files").addEventListener("change", event => {
    const files = [...event.target.files];
    event.target.value = "";
    if (files.length) attempt(() => take(files));
  });
  part("scan-register").addEventListener("click", async () => {
    if (await attempt(() => picker.confirm())) compute(t("Registering the scan"), "register");
  });
  part("scan-fit").addEventListener("click", () => compute(t("Fitting the model to the scan"), "fit"));
  part("scan-close").addEventListener("click", () => page.cases.removeOne(page.cases.of(state.scan) ?? state));
  part("scan-example").addEventListener("click", () => attempt(() => busy(t("Making a synthetic scan"), async () => open(await post("api/scans/example")))));

  // The whole window takes files, so that nobody can miss the place and leave the page by accident.
  addEventListener("dragover", event => { event.preventDefault(); part("scan-drop").classList.add("over"); });
  addEventListener("dragleave", event => { if (!event.relatedTarget) part("scan-drop").classList.remove("over"); });
  addEventListener("drop", event => {
    event.preventDefault();
    part("scan-drop").classList.remove("over");
    const files = [...event.dataTransfer.files];
    if (files.length) attempt(() => take(files));
  });

  return {
    enter() {
      show();
      describe();
      if (state && page.travelling) picker.asked.add(state.scan);  // what was undone is not proposed again
      else if (state && !awaiting) picker.propose();  // it goes on while the user looks
    },
    refresh() {
      part("scan-formats").textContent = t`${page.state.mesh_suffixes.join(" ")} \u2013 any unit and pose, up to ${page.state.upload_mb} MB.`;
      describe();
    },
    open, state: () => state, scene: () => scene,
    async restore() {
      const next = page.state.scan ? await get(`api/scans/${page.state.scan}`) : null, shown = next ? await load(next) : null;
      [state, scene] = [next, shown];
      if (!state) picker.close();
    },
  };
}
