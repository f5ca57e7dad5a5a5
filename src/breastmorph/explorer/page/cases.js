/* The open scans: a list with pictures, switching, names and visits, removing and closing; and the small dialogs for it. */

import { make, part } from "./elements.js";
import { count, day, t } from "./language.js";
import { attempt, busy, say } from "./notices.js";
import { post, remove } from "./server.js";

const SIZE = 72;  // px of a small picture, doubled for fine screens

/* Ask before something that cannot be undone; true for yes. */
export function ask(title, text, yes) {
  const dialog = part("ask");
  part("ask-title").textContent = title;
  part("ask-text").textContent = text;
  part("ask-yes").textContent = yes;
  return new Promise(done => {
    const end = answer => { dialog.close(); done(answer); };
    part("ask-yes").onclick = () => end(true);
    part("ask-no").onclick = () => end(false);
    dialog.oncancel = () => done(false);
    dialog.showModal();
    part("ask-no").focus();
  });
}

export function startCases(page) {
  const pictures = new Map();  // of scans: {text, canvas}
  let shown = "", renaming = null;

  /* How far a scan is, in words. */
  function state(one) {
    if (one.predicted) return t("breast predicted");
    if (one.computed) return one.edited ? t("registered, edited") : t("registered");
    if (!one.points) return t("no points yet");
    if (one.doubts) return count(one.doubts, "1 point in doubt", "{n} points in doubt");
    if (!one.confirmed) return t("points proposed");
    return one.complete ? t("all points set") : count(one.points, "1 point set", "{n} points set");
  }

  function picture(one) {
    const known = pictures.get(one.scan);
    if (known?.text === one.thumbnail) return known.canvas;
    const canvas = make("canvas", { width: 2 * SIZE, height: 2 * SIZE, "aria-hidden": "true" });
    pictures.set(one.scan, { text: one.thumbnail, canvas });
    if (one.thumbnail) {
      const bytes = Uint8Array.from(atob(one.thumbnail), letter => letter.charCodeAt(0));
      createImageBitmap(new Blob([bytes], { type: "image/jpeg" })).then(image => canvas.getContext("2d").drawImage(image, 0, 0)).catch(() => {});
    }
    return canvas;
  }

  function row(one) {
    const current = one.scan === page.state.scan, doubt = one.doubts || (!one.computed && !one.points);
    return make("li", { className: current ? "current" : "", "data-scan": one.scan },
      make("button", { className: "case", "aria-current": String(current), onclick: () => page.switchTo(one.scan) },
        picture(one), make("span", {}, make("strong", {}, one.name),
          make("small", { className: doubt ? "doubt" : "" }, [day(one.day), state(one)].filter(Boolean).join(" \u2013 ")))),
      make("div", { className: "case-actions" },
        make("button", { className: "small", "data-act": "rename", "aria-label": t("Name and visit of {name}", one), onclick: () => rename(one) }, t("Name")),
        make("button", { className: "small", "data-act": "remove", "aria-label": t("Remove {name}", one), onclick: () => removeOne(one) }, t("Remove")),
        make("button", { className: "small", "data-act": "close", "aria-label": t("Close {name}", one), onclick: () => close(one) }, t("Close"))));
  }

  /* Visits of one person stand together, by their days. */
  function rows(cases) {
    const persons = new Map();
    for (const one of cases) persons.set(one.person || one.scan, [...persons.get(one.person || one.scan) ?? [], one]);
    return [...persons].flatMap(([person, visits]) => {
      const sorted = [...visits].sort((a, b) => (a.day || "9").localeCompare(b.day || "9"));
      const title = visits[0].person ? [make("li", { className: "person" },
        make("strong", {}, person), ` \u2013 ${count(visits.length, "1 visit", "{n} visits")}`)] : [];
      return [...title, ...sorted.map(row)];
    });
  }

  function describe() {
    const { cases, scan } = page.state, text = JSON.stringify([cases, scan]);
    if (text === shown) return;  // what has the focus stays
    shown = text;
    for (const key of pictures.keys()) if (!cases.some(one => one.scan === key)) pictures.delete(key);
    part("cases").hidden = !cases.length;
    part("cases-list").replaceChildren(...rows(cases));
    const list = part("cases-list"), current = list.querySelector(".current");
    if (current && current.offsetTop + current.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = current.offsetTop;
    part("case-label").hidden = !cases.length;
    part("case-switch").replaceChildren(...cases.map(one => make("option", { value: one.scan, selected: one.scan === scan },
      [one.person, one.name, day(one.day)].filter(Boolean).join(" \u2013 "))), ...scan ? [] : [make("option", { value: "", selected: true }, t("none"))]);
  }

  const removeOne = one => attempt(async () => {
    page.take(await post(`api/scans/${one.scan}/remove`));
    await page.show();
    say(t("{name} is removed. Undo brings it back for ten minutes.", one));
  });

  const close = one => attempt(async () => {
    const yes = await ask(t("Close {name}?", one), t("The scan and all that was made of it are deleted at once. This cannot be undone."), t("Close for good"));
    if (!yes) return;
    await remove(`api/scans/${one.scan}`);
    await page.again();
    say(t("{name} is closed and deleted.", one));
  });

  function rename(one) {
    renaming = one;
    for (const field of ["name", "person", "day"]) part(`rename-${field}`).value = one[field];
    const persons = [...new Set(page.state.cases.map(({ person }) => person).filter(Boolean))];
    part("rename-persons").replaceChildren(...persons.map(value => make("option", { value })));
    part("rename").showModal();
  }

  part("rename-no").addEventListener("click", () => part("rename").close());
  part("rename-form").addEventListener("submit", () => attempt(async () => {
    const asked = Object.fromEntries(["name", "person", "day"].map(field => [field, part(`rename-${field}`).value]));
    page.take(await post(`api/scans/${renaming.scan}/rename`, asked));
    await page.show();
    say(t("Saved: {name}.", asked));
  }));
  part("case-switch").addEventListener("change", event => page.switchTo(event.target.value));

  /* A small picture of the scan in the view, once for each. */
  async function takePicture() {
    const { view } = page.stage, one = page.state?.cases?.find(({ scan }) => scan === page.stage.scan?.key);
    if (!one || one.thumbnail || !view.available || page.stage.showing !== "scan") return;
    const canvas = make("canvas", { width: 2 * SIZE, height: 2 * SIZE }), from = view.canvas;
    view.render();
    const side = Math.min(from.width, from.height);
    canvas.getContext("2d").drawImage(from, (from.width - side) / 2, (from.height - side) / 2, side, side, 0, 0, 2 * SIZE, 2 * SIZE);
    one.thumbnail = canvas.toDataURL("image/jpeg", 0.8).split(",")[1];
    await post(`api/scans/${one.scan}/thumbnail`, { picture: one.thumbnail }).catch(() => {});
    describe();
  }

  return { describe, takePicture, removeOne, close,
    of: key => page.state.cases.find(({ scan }) => scan === key),
    switchTo: key => attempt(() => busy(t("Opening"), async () => { page.take(await post("api/cases", { scan: key })); await page.show(); })) };
}
