/* The tab "Measures & editing": sliders in centimetres and cc that the server turns into the likeliest shape. */

import { decimal, t } from "./language.js";
import { make, part, slider } from "./elements.js";
import { quantity, sentence, typed, withSpread, wording } from "./figures.js";
import { attempt, clearError, complain, say } from "./notices.js";
import { get, newest, patiently, post, Refusal, remove } from "./server.js";
import { fetchShape, labelOf } from "./shapes.js";

const WAIT = 180;  // ms of rest before a moved slider asks the server
const HOLDS = t("When you change one breast, the other one is held if that is possible.");
const shownValue = (value, unit) => unit === "mm" ? value / 10 : value;  // as in the number fields

export function startEditingTab(page) {
  let base = "mean", loaded = "", features = [], rows = new Map(), wishes = new Map(), attained = [], timer = 0, round = 0, typing = "";
  const holds = { left: null, right: null };  // true or false once the user has said so

  const baseSpec = () => base === "model" ? page.tabs.model.shape().spec : { kind: base };

  async function baseShape() {
    if (base === "patient") return fetchShape({ kind: "patient" });
    if (base === "model") return page.tabs.model.shape();
    return { spec: baseSpec(), label: labelOf(baseSpec()), positions: page.model.mean, maps: {} };
  }

  /* Show the base, without changes. */
  async function showBase() {
    page.stage.show(await baseShape());
    page.measures.compareWith(base === "mean" ? t("Average") : base === "patient" ? t("Patient") : t("Start"), baseSpec());
    page.measures.follow(baseSpec());
  }

  async function showEdit() {
    page.stage.show(await fetchShape({ kind: "edit" }), { colouring: page.stage.colouring === "plain" ? null : page.stage.colouring });
    page.measures.compareWith(t("Before"), baseSpec());
    page.measures.follow({ kind: "edit" });
  }

  async function loadFeatures() {
    const wanted = base === "patient" ? "patient" : "mean";
    if (loaded === wanted) return;
    part("edit-sliders").replaceChildren(make("p", { className: "hint" }, t("Preparing. This takes a few seconds after the start.")));
    const answer = await patiently(() => get(`api/edit?base=${wanted}`), 120);
    features = answer.features;
    loaded = wanted;
    build();
  }

  function build() {
    rows = new Map(features.map(feature => [feature.name, row(feature)]));
    part("edit-sliders").replaceChildren(...[...rows.values()].map(({ root }) => root));
    for (const [name, value] of wishes) if (rows.has(name)) place(name, value);
    refreshMarks();
  }

  function row(feature) {
    const { name, unit } = feature, small = unit === "mm", id = `edit-${name}`;
    const step = small ? 0.1 : 5, low = shownValue(feature.low, unit), high = shownValue(feature.high, unit);
    const made = slider({
      id, label: wording(feature), min: low.toFixed(small ? 1 : 0), max: high.toFixed(small ? 1 : 0), step, value: shownValue(feature.value, unit),
      text: quantity(feature.value, unit), onInput: value => { wish(name, value); },
    });
    // A field for text: one for numbers would take "21,5" for 215 where the browser expects a point.
    const number = make("input", { type: "text", id: `${id}-number`, className: "number", inputMode: "decimal", autocomplete: "off",
      "aria-label": t`${wording(feature)} in ${small ? "cm" : "cc"}` });
    number.value = decimal(shownValue(feature.value, unit), small ? 1 : 0);
    number.addEventListener("input", () => { typing = name; });
    number.addEventListener("blur", () => { typing = ""; });
    number.addEventListener("change", () => {
      typing = "";
      const value = typed(number.value);
      if (value > 0) { wish(name, value); return; }
      complain(new Refusal({ cause: t`\u201C${number.value}\u201D is not a number above 0`, remedy: t("Type for example 21.5 or 21,5.") }));
      page.measures.again();
    });
    const release = make("button", { className: "small release", "aria-label": t`Let ${wording(feature)} free again`, hidden: true,
      onclick: () => { wishes.delete(name); refreshMarks(); ask(); } }, t("Release"));
    made.root.querySelector("output").replaceWith(release);
    made.root.append(make("div", { className: "entry" }, made.input, number, make("span", { className: "unit" }, small ? "cm" : t("cc"))));
    return { ...made, number, release, unit };
  }

  function place(name, value) {
    const { input, number, unit, show } = rows.get(name);
    input.value = value;
    number.value = decimal(value, unit === "mm" ? 1 : 0);
    show(`${number.value} ${unit === "mm" ? "cm" : t("cc")}`);
  }

  function wish(name, value) {
    wishes.set(name, value);
    place(name, value);
    refreshMarks();
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  }

  function refreshMarks() {
    for (const [name, { root, release }] of rows) {
      root.classList.toggle("set", wishes.has(name));
      release.hidden = !wishes.has(name);
    }
    part("edit-reset").disabled = !wishes.size;
  }

  const holding = () => ["thorax", ...Object.keys(holds).filter(side => holds[side])];

  function showHolds(held = []) {
    for (const side of Object.keys(holds)) part(`hold-${side}`).checked = holds[side] ?? held.includes(side);
  }

  /* The measures of both sides before and after, so that nobody overlooks a change of the other breast. */
  function showChanges(result) {
    const main = features.map(({ name }) => result.changes.find(change => change.name === name)).filter(Boolean);
    part("edit-changes").hidden = !main.length;
    part("edit-changes").tBodies[0].replaceChildren(...main.map(change => make("tr", { id: `change-${change.name}`,
      className: change.requested !== null ? "set" : "" },
    make("th", { scope: "row" }, wording(change), make("small", {}, change.requested !== null ? ` ${t("requested")}` : change.held ? ` ${t("held")}` : "")),
    make("td", {}, quantity(change.before, change.unit)), make("td", {}, withSpread({ ...change, value: change.after })))));
    const { held_by_itself: held, not_held: free } = result;
    part("hold-note").textContent = held ? t`The ${t(held)} breast is held by itself, because your changes are to the other one. Untick it to let it change.`
      : free ? t`The ${t(free)} breast could not be held with these values: it changed too. See the table below.`
        : HOLDS;
  }

  /* After a refusal the sliders stand where the shown shape is. */
  function goBack() {
    wishes = new Map(attained);
    for (const [name, value] of wishes) place(name, value);
    refreshMarks();
    page.measures.again();
  }

  const ask = newest(async () => {
    const mine = round, outdated = () => mine !== round;  // undone, or about another shape
    try {
      if (!wishes.size) { await reset(); say(t("No changes: the shape is as at the start.")); return; }
      say(t("Computing."));
      page.stage.view.container.classList.add("computing");
      const asked = [...wishes];
      const result = await patiently(() => post("api/edit", {
        base: baseSpec(), hold: holding(), hold_other: Object.values(holds).every(held => held === null),
        wishes: asked.map(([name, value]) => ({ name, value, unit: rows.get(name).unit === "mm" ? "cm" : "cc" })),
      }), 120);
      if (outdated()) { await remove("api/edit"); return; }
      clearError();
      page.state.edit = result;
      attained = asked;
      page.note("edit", { joined: true });
      part("edit-warnings").replaceChildren(...result.warnings.map(text => make("li", {}, sentence(text))));
      showHolds(result.held);
      showChanges(result);
      if (page.tab !== "measures") { page.changed(); return; }
      await showEdit();
      page.changed();
      say(`${t("Computed.")} ${result.changes.filter(change => change.requested !== null)
        .map(change => `${wording(change)}: ${quantity(change.after, change.unit, 2)}`).join(", ")}.`);
    } catch (error) {
      if (outdated()) return;
      goBack();
      if (page.tab !== "measures") return;
      complain(error);
      say(t("Not changed: see the message."));
    } finally {
      page.stage.view.container.classList.remove("computing");
    }
  });

  /* No wishes any more, and nothing said about them. */
  function forget() {
    round += 1;
    clearTimeout(timer);
    wishes.clear();
    attained = [];
    holds.left = holds.right = null;
    refreshMarks();
    showHolds();
    part("edit-changes").hidden = true;
    part("edit-warnings").replaceChildren();
    part("hold-note").textContent = HOLDS;
  }

  async function reset(what = "edit") {
    forget();
    const edited = page.state.edit;
    if (edited) await remove("api/edit");
    page.state.edit = null;
    page.note(what, { joined: Boolean(edited) });
    await showBase();
    page.changed();
  }

  /* Sliders that nobody has set follow the shown shape, but not under the fingers of somebody who types. */
  page.measures.addEventListener("change", () => {
    for (const [name, { unit }] of rows) {
      const measure = page.measures.value(name);
      if (measure && !wishes.has(name) && name !== typing && typeof measure.value === "number") place(name, shownValue(measure.value, unit));
    }
  });

  part("edit-base").addEventListener("change", () => attempt(async () => {
    base = part("edit-base").value;
    await reset("start");
    await loadFeatures();
    page.measures.again();
    say(t`Start: ${part("edit-base").selectedOptions[0].textContent}.`);
  }));
  part("edit-reset").addEventListener("click", () => attempt(async () => { await reset(); say(t("All changes are undone.")); }));
  for (const side of Object.keys(holds)) {
    part(`hold-${side}`).addEventListener("change", event => {
      holds[side] = event.target.checked;
      if (wishes.size) ask();
      else page.note("hold");
    });
  }

  return {
    async enter() {
      const { edit } = page.state;
      if (edit && JSON.stringify(edit.asked.base) !== JSON.stringify(baseSpec())) await reset();  // the Model sliders moved
      else if (edit) await showEdit();
      else await showBase();
      await loadFeatures();
      if (page.state.edit) { showHolds(page.state.edit.held); showChanges(page.state.edit); }
      page.measures.again();
    },
    /* Start from a patient who has just been registered, or from the mean when she has gone. */
    choose(next) {
      base = next;
      loaded = "";
      forget();
    },
    refresh() {
      const option = part("edit-base").querySelector("[value=patient]");
      option.disabled = !page.state.patient;
      option.textContent = page.state.patient ? t`Patient: ${page.state.patient.name}` : t("Patient (load a scan first)");
      part("edit-base").value = base;
    },
    restore(saved) {
      loaded = "";
      forget();
      base = saved?.base ?? (page.state.patient ? "patient" : "mean");
      Object.assign(holds, saved?.holds);
      attained = page.state.edit ? saved?.wishes ?? [] : [];
      wishes = new Map(attained);
    },
    remember: () => ({ base, wishes: [...attained], holds: { ...holds } }),
  };
}
