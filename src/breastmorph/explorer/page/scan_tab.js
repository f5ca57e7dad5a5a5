/* The tab "Patient's scan": a scan comes in, gets its landmarks, is registered or fitted. */

import { make, part } from "./elements.js";
import { sentence } from "./figures.js";
import { attempt, busy, runJob, say } from "./notices.js";
import { Picker } from "./picking.js";
import { loadResult, loadScan } from "./raw_scan.js";
import { get, post, Refusal, remove, upload } from "./server.js";

const COMPANIONS = [".mtl", ".bin", ".png", ".jpg", ".jpeg"];
const ending = name => name.slice(name.lastIndexOf(".")).toLowerCase();

export function startScanTab(page) {
  let state = null, scene = null, awaiting = false;  // a landmark file that comes with the scan
  const picker = new Picker(part("scan-picker"), page, next => { state = next; describe(); });

  function sort(files) {
    const { mesh_suffixes: meshes, landmark_suffixes: landmarks, upload_mb: most } = page.state;
    const found = { mesh: null, landmarks: null, companions: [], session: null };
    for (const file of files) {
      const kind = ending(file.name);
      if (file.size > most * 2 ** 20) {
        throw new Refusal({ cause: `The file ${file.name} is larger than ${most} MB`, remedy: "Reduce the scan, for example to 500,000 triangles." });
      }
      if (kind === ".zip") found.session = file;
      else if (COMPANIONS.includes(kind)) found.companions.push(file);
      else if (meshes.includes(kind) && !found.mesh) found.mesh = file;
      else if (landmarks.some(suffix => file.name.toLowerCase().endsWith(suffix))) found.landmarks = file;
      else if (meshes.includes(kind)) {
        throw new Refusal({ cause: `${found.mesh.name} and ${file.name} are two scans`, remedy: "Open one scan at a time; for many, start with a folder: breastmorph explore FOLDER." });
      } else throw new Refusal({ cause: `The file ${file.name} is not a scan that can be read`, remedy: `Use one of ${meshes.join(", ")}.` });
    }
    return found;
  }

  /* Files that were dropped or chosen: a mesh, its texture, its landmarks, or a session. */
  async function take(files) {
    const { mesh, landmarks, companions, session } = sort(files);
    if (session) { await page.openSession(session); return; }
    if (!mesh && landmarks && state) { await picker.readFile(landmarks); return; }
    if (!mesh) throw new Refusal({ cause: "There is no 3D scan among these files", remedy: `A scan ends in ${page.state.mesh_suffixes.join(", ")}.` });
    awaiting = Boolean(landmarks);
    await busy(`Reading ${mesh.name}`, async () => {
      const ids = [];
      for (const file of companions) ids.push((await upload(`api/files?name=${encodeURIComponent(file.name)}`, file)).file);
      const path = `api/scans?name=${encodeURIComponent(mesh.name)}${ids.length ? `&with=${ids.join(",")}` : ""}`;
      await open(await upload(path, mesh));
      if (landmarks) await picker.readFile(landmarks);
    }).finally(() => { awaiting = false; });
    say(`${mesh.name} is loaded.`);
  }

  /* A scan is open once all of it is here: what is shown and what is marked must be the same. */
  async function open(next) {
    const shown = await load(next);
    [state, scene] = [next, shown];
    await page.go("scan");
    show();
  }

  async function load(next) {
    const shown = await loadScan(next);
    if (next.has_result) shown.result = await loadResult(next.scan);
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
    else page.measures.clear("Measures appear when the scan is registered or fitted.");
    picker.update(state);
    page.picker = picker;
  }

  const isPatient = () => Boolean(state) && page.state.patient?.scan === state.scan;

  function describe() {
    part("scan-body").hidden = !state;
    part("scan-drop").classList.toggle("compact", Boolean(state));
    part("scan-drop-text").textContent = state ? "Another scan, or a landmark file: drop it here"
      : "Drop a 3D scan here, with its texture and landmark file if there are any";
    if (!state) return;
    part("scan-body").classList.toggle("complete", state.complete);
    const patient = isPatient() ? page.state.patient : null;
    const texture = !state.texture ? "" : scene?.image ? ", with texture" : ", its texture cannot be shown";
    part("scan-about").replaceChildren(make("strong", {}, state.name), ` \u2013 ${state.vertices.toLocaleString("en")} points${texture}`);
    part("scan-register").disabled = !state.complete;
    part("scan-register").classList.toggle("primary", !patient);
    part("scan-continue").textContent = patient ? "Do it again, with other landmarks" : "Continue";
    const proposed = !state.confirmed;
    part("scan-register").textContent = proposed ? "Confirm the points and register" : patient ? "Register again" : "Register the scan";
    part("scan-register-hint").textContent = state.complete ? "Brings the model\u2019s points onto this scan; some seconds."
      : "Needs the landmarks above, or a landmark file.";
    part("scan-result").hidden = !patient;
    if (patient) describePatient(patient);
    part("save-landmarks").disabled = !Object.keys(state.landmarks).length;
  }

  function describePatient(patient) {
    const { mean_mm: mean, p95_mm: most, seen } = patient.residual;
    part("scan-result").replaceChildren(
      make("div", { className: "notice good" },
        make("p", {}, make("strong", {}, patient.how === "registered" ? "Registered. " : "Fitted. "),
          `The shape lies ${mean.toFixed(1)} mm from the scan on average, ${most.toFixed(1)} mm or less on 95 % of the skin`,
          seen < 0.995 ? `; ${(100 * seen).toFixed(0)} % of the shape was seen by the scanner.` : ".")),
      make("ul", { className: "warnings" }, ...patient.warnings.map(text => make("li", {}, sentence(text)))),
      make("div", { className: "row buttons" },
        make("button", { id: "scan-measure", className: patient.absent_side ? "" : "primary", onclick: () => page.go("measures") }, "Measure, edit"),
        patient.absent_side ? make("button", { id: "scan-predict", className: "primary", onclick: () => page.tabs.missing.predict() }, `Predict the ${patient.absent_side} breast`)
          : make("button", { id: "scan-predict", onclick: () => page.go("missing") }, "Predict a breast")));
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
    say(`Done: ${patient.name}. The shape lies ${patient.residual.mean_mm.toFixed(1)} mm from the scan on average.`);
  });

  part("scan-choose").addEventListener("click", () => part("scan-files").click());
  part("scan-files").addEventListener("change", event => {
    const files = [...event.target.files];
    event.target.value = "";
    if (files.length) attempt(() => take(files));
  });
  part("scan-register").addEventListener("click", async () => {
    if (await attempt(() => picker.confirm())) compute("Registering the scan", "register");
  });
  part("scan-fit").addEventListener("click", () => compute("Fitting the model to the scan", "fit"));
  part("scan-close").addEventListener("click", () => attempt(async () => {
    const { scan } = state, theirs = isPatient();
    await remove(`api/scans/${scan}`);
    state = scene = null;
    picker.close();
    if (theirs) {
      if (page.stage.kept) page.stage.forget();  // it may show her
      await page.setPatient(null);
    }
    describe();
    page.showDefault();
    say("The scan is removed.");
  }));
  part("scan-example").addEventListener("click", () => attempt(() => busy("Making a synthetic scan", async () => open(await post("api/scans/example")))));

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
      if (state && !awaiting) picker.propose();  // it goes on while the user looks
    },
    refresh() {
      part("scan-formats").textContent = `${page.state.mesh_suffixes.join(" ")} \u2013 any unit and pose, up to ${page.state.upload_mb} MB.`;
      describe();
    },
    open, state: () => state,
    async restore() {
      const next = page.state.scan ? await get(`api/scans/${page.state.scan}`) : null, shown = next ? await load(next) : null;
      [state, scene] = [next, shown];
    },
  };
}
