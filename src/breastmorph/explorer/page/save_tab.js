/* The tab "Save": files for printing, tables, pages and the whole session. */

import { day, language, t } from "./language.js";
import { make, part } from "./elements.js";
import { attempt, busy, runJob, say } from "./notices.js";
import { targetsOf } from "./plan.js";
import { download, saveBlob } from "./server.js";
import { labelOf } from "./shapes.js";

export function startSaveTab(page) {
  let filled = null;  // the case that identifier and date were filled in for
  /* The shape in the picture: the patient's where her scan with its result is shown. */
  const onScan = () => page.stage.showing === "scan" && page.state.patient && page.stage.scan?.key === page.state.patient.scan;
  const spec = () => onScan() ? { kind: "patient" } : page.stage.shape?.spec ?? { kind: "mean" };
  const saved = name => say(t`${name} is saved in the folder of your browser\u2019s downloads.`);

  for (const button of part("save-mesh").children) {
    button.addEventListener("click", () => attempt(async () => {
      const { format } = button.dataset;
      if (format === "obj" && page.stage.ownSkin && page.stage.hasSkin && (page.stage.showing === "shape" || onScan())) {  // its skin is a picture, so there are three files
        const { file, name } = await runJob(t("Painting the skin"), "api/download/textured", { shape: spec() });
        await download("GET", `api/files/${file}`, undefined, name);
        saved(name);
        return;
      }
      await busy(t("Writing the file"), () => download("POST", "api/download/mesh", { shape: spec(), format, plain: !page.stage.ownSkin }, `shape.${format}`));
      saved(t`The shape as ${format.toUpperCase()}`);
    }));
  }

  part("save-measures").addEventListener("click", () => attempt(async () => {
    const shapes = [spec(), ...(page.stage.kept ? [{ kind: "kept" }] : []), ...(page.state.patient && spec().kind !== "patient" ? [{ kind: "patient" }] : [])];
    await busy(t("Measuring"), () => download("POST", "api/download/measures", { shapes }, "measures.csv"));
    saved(t("The table"));
  }));

  part("save-sheet").addEventListener("click", () => attempt(async () => {
    const kind = part("save-sheet-kind").value, body = kind === "measures" ? { kind, shape: spec() } : { kind };
    const { file, name } = await runJob(t("Drawing the page"), "api/download/sheet", body);
    await download("GET", `api/files/${file}`, undefined, name);
    saved(name);
  }));

  part("save-handout").addEventListener("click", () => attempt(async () => {
    const target = part("handout-about").value, about = target ? { target } : { shape: spec() };
    const date = part("handout-date").value ? day(part("handout-date").value) : "";
    const { file, name } = await runJob(t("Drawing the page"), "api/download/handout",
      { ...about, language, paper: part("handout-paper").value, identifier: part("handout-identifier").value.trim(), date });
    await download("GET", `api/files/${file}`, undefined, name);
    saved(name);
  }));

  part("save-picture").addEventListener("click", () => attempt(async () => {
    const note = page.state.model.synthetic ? part("model-synthetic").textContent : "";
    saveBlob(picture(page.stage.view.screenshot({ note })), "view.png");
    saved(t("The picture"));
  }));

  part("save-landmarks").addEventListener("click", () => attempt(async () => {
    const format = part("save-landmarks-format").value, scan = page.openScan()?.scan;
    await download("POST", "api/download/landmarks", { scan, format }, `landmarks${format}`);
    saved(t("The landmark file"));
  }));

  part("save-session").addEventListener("click", () => attempt(async () => {
    await busy(t("Writing the session"), () => download("POST", "api/download/session", { page: page.remember() }, "session.zip"));
    page.history.saved();
    saved(t("The session"));
  }));
  part("open-session").addEventListener("click", () => part("session-file").click());
  part("session-file").addEventListener("change", event => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) attempt(() => page.openSession(file));
  });

  return {
    enter() {
      const { scan = "", person = "", name = "", day: visit = "" } = page.cases.of(page.state.scan) ?? {};
      const about = JSON.stringify([scan, person, name, visit]);
      if (about !== filled) {
        part("handout-identifier").value = person || name;
        part("handout-date").value = visit || new Date().toISOString().slice(0, 10);
        filled = about;
      }
      this.refresh();
    },
    refresh() {
      part("save-shape").textContent = onScan() ? labelOf(spec()) : page.stage.shape?.label ?? t("none yet");
      const before = part("handout-about").value;
      part("handout-about").replaceChildren(...[["", t("Measures of the shown shape")], ...targetsOf(page.state)]
        .map(([value, words]) => make("option", { value, selected: value === before }, words)));
      part("save-sheet-kind").querySelector("[value=edit]").disabled = !page.state.edit;
      part("save-sheet-kind").querySelector("[value=prediction]").disabled = !page.state.prediction;
      if (part("save-sheet-kind").selectedOptions[0]?.disabled) part("save-sheet-kind").value = "measures";
      part("save-landmarks").disabled = !Object.keys(page.openScan()?.landmarks ?? {}).length;
    },
  };
}

/* A data URL as a blob, without a request: the page's rules forbid fetching one. */
function picture(url) {
  const bytes = atob(url.slice(url.indexOf(",") + 1));
  return new Blob([Uint8Array.from(bytes, letter => letter.charCodeAt(0))], { type: "image/png" });
}
