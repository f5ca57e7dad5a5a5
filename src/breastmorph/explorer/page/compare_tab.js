/* The tab "Compare & measure": any two shapes, where they differ, lines and values on the body, a ruler, notes. */

import { make, part } from "./elements.js";
import { quantity, signed, withSpread, wording } from "./figures.js";
import { day, t } from "./language.js";
import { attempt, busy, complain, runJob, say } from "./notices.js";
import { startPlan } from "./plan.js";
import { arrays, download, newest, post } from "./server.js";
import { fetchShape, labelOf } from "./shapes.js";

const RED = "#b3261e", BLUE = "#12539a", GREEN = "#1f6e33", PURPLE = "#7b2a8c", ORANGE = "#b8460a", INK = "#1b2730";
const COLOURS = { "SN-NL": RED, "SN-NR": RED, "NL-NR": BLUE, "NL-IMFL": GREEN, "NR-IMFR": GREEN, "base-width-left": PURPLE, "base-width-right": PURPLE, intermammary: ORANGE };
const SCAN = "scan";  // the raw scan, which has other triangles
const short = value => quantity(value, "mm");

/* The colour of a line, as it is drawn on the body. */
function swatch(colour) {
  const mark = make("span", { className: "swatch", "aria-hidden": "true" });
  mark.style.background = colour;
  return mark;
}

export function startCompareTab(page) {
  let marks = {}, tool = "off", from = null, lines = { about: "", found: null }, drawing = 0;
  const plan = startPlan(page);
  const chosen = name => document.querySelector(`[name=${name}]:checked`).value;
  const text = spec => JSON.stringify(spec);
  const spec = id => part(id).value ? JSON.parse(part(id).value) : null;

  /* All shapes that there are by now: [spec, words]. */
  function shapes() {
    const { patient, edit, prediction, cases, scan, kept } = page.state, found = [];
    const name = patient?.name ?? "";
    if (scan) found.push([{ kind: SCAN }, t`scan: ${page.cases.of(scan)?.name ?? ""}`]);
    if (patient) found.push([{ kind: "patient" }, t`registered: ${name}`]);
    if (edit) found.push([{ kind: "edit" }, labelOf({ kind: "edit" })]);
    if (prediction) found.push([{ kind: "prediction" }, labelOf({ kind: "prediction" })], [{ kind: "mirrored" }, t("with the mirror image of the other breast")]);
    if (patient && !patient.absent_side) found.push([{ kind: "reflected" }, t("mirror image of the torso")]);
    for (const one of cases) if (one.computed && one.scan !== scan) found.push([{ kind: "case", scan: one.scan }, [t("visit"), one.person || one.name, day(one.day)].filter(Boolean).join(" ")]);
    if (kept) found.push([{ kind: "kept" }, labelOf({ kind: "kept" })]);
    const scores = page.tabs.model.scores();
    if (scores.some(score => score)) found.push([{ kind: "model", scores }, labelOf({ kind: "model", scores })]);
    return [...found, [{ kind: "mean" }, labelOf({ kind: "mean" })]];
  }

  function fill() {
    const all = shapes(), option = ([value, words]) => make("option", { value: text(value) }, words);
    const [first, second] = [part("compare-shape").value, part("compare-other").value];
    part("compare-shape").replaceChildren(...all.map(option));
    part("compare-other").replaceChildren(make("option", { value: "" }, t("nothing")), ...all.filter(([value]) => value.kind !== SCAN).map(option));
    const known = value => all.some(([one]) => text(one) === value);
    const wanted = page.stage.showing === "shape" && page.stage.shape ? text(page.stage.shape.spec) : "";
    part("compare-shape").value = known(first) ? first : known(wanted) ? wanted : text(all[0][0]);
    part("compare-other").value = known(second) && second !== part("compare-shape").value ? second : "";
  }

  const words = id => part(id).selectedOptions[0]?.textContent ?? "";

  /* What is chosen, in the view and in the table; whoever goes elsewhere meanwhile is not told what became of it. */
  const show = newest(() => draw().catch(error => { if (page.tab === "compare") complain(error); }));
  async function draw() {
    const first = spec("compare-shape"), second = first?.kind === SCAN ? null : spec("compare-other");
    part("compare-other").disabled = first?.kind === SCAN;
    document.querySelectorAll("[name=compare-map]").forEach(radio => { radio.disabled = first?.kind === SCAN || (radio.value === "difference" && !second); });
    document.querySelectorAll("[name=compare-layout]").forEach(radio => { radio.disabled = !second; });
    if (document.querySelector("[name=compare-map]:checked").disabled) document.querySelector("[name=compare-map][value=plain]").checked = true;
    if (page.tab !== "compare") return;
    if (first.kind === SCAN) {
      page.stage.compareWith(null);
      page.stage.showScan(page.tabs.scan.scene());
      page.measures.clear(t("Measures appear when the scan is registered or fitted."));
    } else {
      const shape = { ...await fetchShape(first), label: words("compare-shape") };
      let other = null;
      if (second) {
        const found = await arrays("POST", "api/compare", { shape: first, other: second });
        shape.maps.difference = found.difference;
        other = { spec: second, label: words("compare-other"), positions: found.vertices, maps: {}, skin: found.colors ?? null };
      }
      const map = chosen("compare-map");
      if (map === "symmetry") shape.maps.symmetry = (await arrays("POST", "api/symmetry", { shape: first })).symmetry;
      if (page.tab !== "compare") return;
      page.stage.show(shape, { colouring: map });
      if (page.stage.colouring !== map) page.stage.setColouring(map);
      page.stage.compareWith(other, chosen("compare-layout"));
      page.measures.follow(first);
    }
    for (const next of [showLines, () => table(first, second), plan.show]) {
      if (page.tab !== "compare") return;
      await next();
    }
  }

  async function table(first, second) {
    part("compare-table").hidden = !second;
    part("compare-page").hidden = !(first.kind === "patient" && second?.kind === "case");
    part("compare-note").textContent = "";
    if (!second) return;
    const { rows } = await post("api/compare/measures", { shape: first, other: second });
    part("compare-first").textContent = words("compare-shape");
    part("compare-second").textContent = words("compare-other");
    // The unit, and that it is predicted, stand with the name: so the columns stay narrow.
    const cell = (measure, difference = false) => {
      const [number, ...rest] = withSpread({ ...measure, predicted: false }, difference).split(" ");
      return make("td", {}, [number, ...rest.slice(0, -1)].join(" "));
    };
    part("compare-table").tBodies[0].replaceChildren(...rows.map(row => make("tr", { id: `compare-${row.name}` },
      make("th", { scope: "row" }, `${wording(row)} (${quantity(row.value, row.unit).split(" ")[1]})${row.predicted || row.other.predicted ? `, ${t("predicted")}` : ""}`),
      cell(row), cell(row.other), cell(row.difference, true))));
    part("compare-note").textContent = rows.some(({ difference }) => difference.sd !== null) ? t("\u00b1 is one standard deviation.")
      : t("Both are made of one scan, whose errors they share: the difference has no \u00b1 of its own.");
  }

  /* What changed between two visits, and whether it is more than noise: the page of `breastmorph compare`. */
  part("compare-page").addEventListener("click", () => attempt(async () => {
    const { file, name } = await runJob(t("Comparing the visits"), "api/download/comparison", { scans: [spec("compare-other").scan, page.state.scan] });
    await download("GET", `api/files/${file}`, undefined, name);
    say(t`${name} is saved in the folder of your browser\u2019s downloads.`);
  }));

  /* ---- lines, ruler, notes ---- */

  /* What the points of a mark belong to. */
  const about = () => page.stage.showing === "scan" ? `scan ${page.stage.scan?.key}` : page.stage.shape ? `${text(page.stage.shape.spec)} ${page.state.scan}` : "";
  const target = () => page.stage.showing === "scan" ? { scan: page.stage.scan.key } : { shape: page.stage.shape.spec };

  async function showLines() {
    const on = part("lines-show").checked, mine = drawing += 1, key = about();
    if (!key || page.tab !== "compare") return;
    const { patient, edit, prediction } = page.state, now = JSON.stringify([key, patient, edit, prediction, page.tabs.scan.state()?.landmarks]);
    if (on && lines.about !== now) {
      const found = await busy(t("Measuring along the skin"), () => post("api/lines", target()));
      if (mine !== drawing) return;
      lines = { about: now, found };
    }
    const of = (values, kind) => values.find(one => one.kind === kind && one.value !== null);
    const main = ({ values }) => of(values, "straight") ?? values.find(one => one.value !== null);
    const drawn = on ? [  // the body shows the numbers, the table below says what they are
      ...lines.found.lines.map(line => ({ name: line.name, points: line.points, colour: COLOURS[line.name], label: main(line) ? quantity(main(line).value, main(line).unit) : "" })),
      ...lines.found.folds.flatMap(({ side, fold, nipple, level, grade, above_fold: above }) => [
        { name: `fold-${side}`, points: [fold, level], colour: INK, dashed: false, label: "" },
        { name: `ptosis-${side}`, points: [nipple, level], colour: INK, label: `${signed(above / 10)} cm` }]),
    ] : [];
    part("lines-table").hidden = !drawn.length;
    const row = (colour, words, ...cells) => make("tr", {}, make("th", { scope: "row" }, swatch(colour), words), ...cells.map(text => make("td", {}, text)));
    part("lines-table").tBodies[0].replaceChildren(...on ? [
      ...lines.found.lines.map(line => row(COLOURS[line.name], `${wording(line)}${main(line)?.predicted ? ` (${t("predicted")})` : ""}`, withSpread({ ...main(line), predicted: false }), of(line.values, "tape") ? short(of(line.values, "tape").value) : "\u2013")),
      ...lines.found.folds.map(({ side, grade, above_fold: above }) => row(INK,
        side === "left" ? t("Left nipple above the fold; ptosis") : t("Right nipple above the fold; ptosis"), `${signed(above / 10)} cm`, t(grade))),
    ] : []);
    const own = (marks[key] ?? []).map((mark, k) => mark.text !== undefined
      ? { name: `mark-${k}`, points: [mark.points[0]], label: `\u270e ${mark.text}` }
      : { name: `mark-${k}`, points: mark.way.length ? mark.way : mark.points, colour: ORANGE, label: said(mark) });
    page.stage.setLines([...drawn, ...own, ...from ? [{ name: "from", points: [from.point], label: t("from here") }] : []]);
    part("marks").replaceChildren(...(marks[key] ?? []).map((mark, k) => make("li", {}, make("span", {}, mark.text ?? said(mark)),
      make("button", { className: "small", "aria-label": t`Delete mark ${k + 1}`, onclick: () => change(marks[key].filter(one => one !== mark)) }, t("Delete")))));
  }

  const said = mark => [t`straight ${short(mark.straight)}`, mark.along === null ? t("no way along the skin") : t`skin ${short(mark.along)}`].join(", ");

  async function change(list) {
    const key = about();
    marks = { ...marks, [key]: list };
    if (!list.length) delete marks[key];
    await showLines();
    await page.note("mark");
  }

  async function setRuler(point) {
    if (!from || from.about !== about()) { from = { point, about: about() }; await showLines(); say(t("Now click where the ruler ends.")); return; }
    const found = await post("api/ruler", { ...target(), points: [from.point, point] });
    from = null;
    await change([...marks[about()] ?? [], found]);
    say(`${said(found)}.`);
  }

  async function setNote(point) {
    const words = part("note-text").value.trim();
    if (!words) { say(t("Type the text of the note first.")); part("note-text").focus(); return; }
    await change([...marks[about()] ?? [], { points: [point], text: words, way: [] }]);
    part("note-text").value = "";
    say(t("The note is set."));
  }

  /* The corner of the face under the pointer that lies nearest. */
  const nearest = ({ face, barycentric }) => page.model.faces[3 * face + barycentric.indexOf(Math.max(...barycentric))];

  for (const id of ["compare-shape", "compare-other"]) part(id).addEventListener("change", () => attempt(show));
  for (const radio of document.querySelectorAll("[name=compare-layout]")) radio.addEventListener("change", () => page.stage.setLayout(radio.value));
  for (const radio of document.querySelectorAll("[name=compare-map]")) radio.addEventListener("change", () => attempt(show));
  for (const radio of document.querySelectorAll("[name=tool]")) {
    radio.addEventListener("change", () => {
      tool = radio.value;
      from = null;
      part("note-field").hidden = tool !== "note";
      page.stage.view.container.classList.toggle("picking", tool !== "off");
      attempt(showLines);
    });
  }
  part("lines-show").addEventListener("change", () => attempt(showLines));

  /* The line between two shapes is moved by the pointer or by arrow keys. */
  const split = part("split"), place = () => {
    split.hidden = !(page.stage.layout === "split" && page.stage.kept && page.stage.showing === "shape");
    split.style.left = `${100 * page.stage.splitAt}%`;
    split.setAttribute("aria-valuenow", String(Math.round(100 * page.stage.splitAt)));
  };
  split.addEventListener("pointerdown", event => split.setPointerCapture(event.pointerId));
  split.addEventListener("pointermove", event => {
    const box = page.stage.view.container.getBoundingClientRect();
    if (split.hasPointerCapture(event.pointerId)) page.stage.setSplitAt((event.clientX - box.left) / box.width);
  });
  split.addEventListener("keydown", event => {
    const step = { ArrowLeft: -0.05, ArrowRight: 0.05 }[event.key];
    if (step) { event.preventDefault(); page.stage.setSplitAt(page.stage.splitAt + step); }
  });
  page.stage.addEventListener("split", place);
  page.stage.addEventListener("change", place);

  return {
    async enter() {
      fill();
      await show();
    },
    leave() {
      plan.leave();
      drawing += 1;
      tool = "off";
      from = null;
      document.querySelector("[name=tool][value=off]").checked = true;
      part("note-field").hidden = true;
      page.stage.setLines([]);
      part("lines-table").hidden = true;
      page.stage.compareWith(null);
      return page.stage.setKept(page.state.kept);
    },
    /* A click on the body, where one of the tools is chosen; false where none is. */
    click(event) {
      if (page.tab !== "compare") return false;
      const hit = page.stage.view.pick(event.clientX, event.clientY), thick = hit?.mesh === "shape" ? plan.at(nearest(hit)) : null;
      if (thick) { say(t`Here: ${thick}`); part("plan-point").textContent = t`Here: ${thick}`; return true; }
      if (tool === "off") return false;
      const point = page.stage.pointAt(event.clientX, event.clientY);
      if (!point) say(t("That is beside the body."));
      else attempt(() => tool === "ruler" ? setRuler([...point]) : setNote([...point]));
      return true;
    },
    /* The shapes that are compared: {first, second} as {spec, label} or null; a raw scan is none. */
    chosen() {
      const one = id => spec(id) && spec(id).kind !== SCAN ? { spec: spec(id), label: words(id) } : null;
      return { first: one("compare-shape"), second: part("compare-other").disabled ? null : one("compare-other") };
    },
    remember: () => marks,
    restore(saved) { marks = saved ?? {}; from = null; },
  };
}
