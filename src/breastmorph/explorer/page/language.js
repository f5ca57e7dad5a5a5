/* The page in the user's language: English stands in the page itself, the server has its texts in all others. */

const KEY = "breastmorph-language", ENGLISH = "English";
const CATALOGUES = await (await fetch("words.json")).json();
/* The languages that there are, by their codes, as each calls itself. */
export const LANGUAGES = { en: ENGLISH, ...Object.fromEntries(Object.entries(CATALOGUES).map(([code, texts]) => [code, texts[ENGLISH]])) };
const wanted = localStorage.getItem(KEY) ?? navigator.language.slice(0, 2);
export const language = wanted in CATALOGUES ? wanted : "en";
const words = CATALOGUES[language] ?? {};
/* Numbers and days are written as in the user's country, where that speaks this language. */
const country = navigator.languages?.find(one => one.slice(0, 2) === language) ?? language;

/* A text in the user's language. t("{name} is open", {name}) or t`${name} is open`, which is called {0} in the catalogue. */
export function t(text, ...values) {
  const tagged = Array.isArray(text), given = tagged ? values : values[0] ?? {};
  const key = tagged ? text.reduce((all, part, k) => `${all}{${k - 1}}${part}`) : text;
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (hole, name) => name in given ? given[name] : hole);
}

/* Marks a text for the catalogue that is translated where it is shown. */
export const word = text => text;

/* Of one thing or of many: t("1 scan") or t("{n} scans"). */
export const count = (n, one, many) => t(n === 1 ? one : many, { n: whole(n) });

/* Numbers and days as they are written there. */
export const decimal = (value, digits) => value.toLocaleString(country, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false });
export const whole = value => value.toLocaleString(country, { maximumFractionDigits: 0 });
export const day = iso => iso ? new Date(`${iso}T12:00`).toLocaleDateString(country, { year: "numeric", month: "short", day: "numeric" }) : "";

export function setLanguage(next) {
  localStorage.setItem(KEY, next);
  location.reload();
}

const plain = text => text.replace(/\s+/g, " ").trim();
const SAID = ["aria-label", "title", "placeholder"];

/* Translate what stands in the page's own HTML. */
export function translate(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) {
      const known = words[plain(node.data)];
      if (known) node.data = /^\s/.test(node.data) ? ` ${known}${/\s$/.test(node.data) ? " " : ""}` : known + (/\s$/.test(node.data) ? " " : "");
    } else if (node.nodeType === Node.ELEMENT_NODE) {
      for (const name of SAID) if (words[plain(node.getAttribute(name) ?? "")]) node.setAttribute(name, words[plain(node.getAttribute(name))]);
      if (node.tagName === "TEMPLATE") translate(node.content);
    }
  }
}

document.documentElement.lang = language;
Object.assign(BreastOverlay.words, { left: t("Patient's left"), right: t("Patient's right"),
  fromLeft: t("Seen from patient's left"), fromRight: t("Seen from patient's right"),
  keys: t("Arrow keys turn it, with Shift they move it, plus and minus zoom, Home shows the front."),
  noPicture: t("The 3D view needs WebGL, which this browser does not offer or has switched off. Everything else on the page works."), point: (0.5).toLocaleString(country)[1] });
if (language !== "en") translate(document.documentElement);
