/* The page's side of the server: the session, requests, binary arrays, long jobs. */

import { language, t } from "./language.js";

const KEY = "breastmorph-session", TOKEN = "breastmorph-token", CODE = "#code=";
const LEAVING = 4000;  // ms that a page which is loaded again may take to leave

/* The server said no, and why. */
export class Refusal extends Error {
  constructor({ cause, remedy = "", where = "", code = "" }, status = 0) {
    super(cause);  // what the server says of requests has no values and is translated here
    Object.assign(this, { cause: t(cause), remedy: t(remedy), where, code, status });
  }
}

/* A user pressed Cancel: nothing to report. */
export class Cancelled extends Error {}

/* Whether what was asked about had gone before the answer came: removed, undone. Nobody waits for it any more. */
export const isPast = error => error.name === "AbortError";

/* Requests that change nothing on the server. */
const LOOKING = ["api/shape", "api/measures", "api/download", "api/left", "api/enter", "api/sessions", "api/undo", "api/redo", "api/cases"];
let changed = () => {};
export function onChange(listener) { changed = listener; }

const pause = ms => new Promise(done => setTimeout(done, ms));

let session = sessionStorage.getItem(KEY), scan = null;

/* The scan that the page shows: what is asked from now on is about it, whatever the server opens meanwhile. */
export function setScan(key) {
  if (key !== scan) { asking.abort(); asking = new AbortController(); }  // no answer about one patient is shown with another
  scan = key;
  leaving = false;
}

/* Questions about what is shown, and requests that take it away: the answers would be about something that has gone. */
const SHOWN = /^api\/(shape|measures|compare|symmetry|lines|sections|plan)\b/, AWAY = /^(POST api\/(undo|redo|scans\/[^/]+\/remove)|DELETE api\/scans\/[^/]+)$/;
let asking = new AbortController(), leaving = false;  // until the page knows what is there instead

async function request(method, path, { body, raw, code } = {}) {
  const headers = { "X-Token": localStorage.getItem(TOKEN) ?? "" };  // looked up each time: another tab may have a new one
  headers["X-Language"] = language;
  if (scan !== null) headers["X-Scan"] = scan;
  const away = AWAY.test(`${method} ${path}`), signal = SHOWN.test(path) ? asking.signal : undefined;
  if (signal && leaving) throw new DOMException("what is shown is about to go", "AbortError");
  if (away) { asking.abort(); asking = new AbortController(); leaving = true; }
  if (session) headers["X-Session"] = session;
  if (code) headers["X-Code"] = code;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (raw) headers["Content-Type"] = "application/octet-stream";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: raw ?? (body === undefined ? undefined : JSON.stringify(body)), signal });
  } catch (error) {
    if (isPast(error)) throw error;
    leaving = false;
    // A server that refuses an upload early closes the connection before the browser has sent everything.
    throw raw ? new Refusal({ cause: t("The upload was interrupted"), remedy: t("The file may be larger than allowed; or start breastmorph explore again.") })
      : new Refusal({ cause: t("The explorer does not answer"), remedy: t("Start it again with: breastmorph explore") });
  }
  if (answer.ok) {
    if (method !== "GET" && !LOOKING.some(each => path.startsWith(each))) changed();
    return answer;
  }
  if (away) leaving = false;
  let told = null;
  try { told = await answer.json(); } catch { /* not from the explorer itself */ }
  throw new Refusal(told?.cause ? told : { cause: t`The explorer answered with error ${answer.status}`, remedy: t("Try again; if it stays, restart it.") },
    answer.status);
}

export const get = async path => (await request("GET", path)).json();
export const post = async (path, body = {}) => (await request("POST", path, { body })).json();
export const upload = async (path, raw) => (await request("POST", path, { raw })).json();
export async function remove(path) { await request("DELETE", path); }

/* Ask again while the server still prepares something. */
export async function patiently(ask, seconds = 60) {
  for (let waited = 0; ; waited += 0.4) {
    try {
      return await ask();
    } catch (error) {
      if (error.status !== 503 || waited > seconds) throw error;
      await pause(400);
    }
  }
}

/* Whether no other tab works in a session: one that was duplicated starts with the memory of the first, and what one
   does must not change what the other shows. The lock is held as long as the page is open. */
async function isOurs(id) {
  if (!navigator.locks) return true;  // on other addresses than this computer's, browsers have none
  try {
    await new Promise((held, refused) => {
      navigator.locks.request(`${KEY}-${id}`, { signal: AbortSignal.timeout(LEAVING) }, () => { held(); return new Promise(() => {}); }).catch(refused);
    });
    return true;
  } catch {
    return false;
  }
}

/* Come in with the code of the address, which works once; a browser that came in before needs none. */
async function enter() {
  if (!location.hash.startsWith(CODE)) return;
  const code = location.hash.slice(CODE.length);
  history.replaceState(null, "", location.pathname);
  try {
    localStorage.setItem(TOKEN, (await (await request("POST", "api/enter", { code })).json()).token);
  } catch (error) {
    if (error.code !== "used-address" || !localStorage.getItem(TOKEN)) throw error;
  }
}

/* An address with a code that is opened in the page's own tab loads nothing by itself. */
addEventListener("hashchange", () => { if (location.hash.startsWith(CODE)) location.reload(); });

/* The session of this tab: the one it had before, or a new one. */
export async function start() {
  await enter();
  if (session && await isOurs(session)) {
    try { return await get("api/state"); } catch (error) { if (error.code !== "no-session") throw error; }
  }
  session = null;
  const state = await (await request("POST", "api/sessions")).json();
  session = state.session;
  sessionStorage.setItem(KEY, session);
  isOurs(session);
  return state;
}

/* Somebody else may have the place of a tab that was closed; one that is loaded again is back before that. */
addEventListener("pagehide", () => {
  if (session) fetch("api/left", { method: "POST", headers: { "X-Session": session, "X-Token": localStorage.getItem(TOKEN) ?? "" }, keepalive: true }).catch(() => {});
});

/* Binary answer: {name: typed array ...}. */
export async function arrays(method, path, body) {
  const buffer = await (await request(method, path, { body })).arrayBuffer();
  const length = new DataView(buffer).getUint32(4, true);
  const parts = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const kinds = { float32: Float32Array, uint32: Uint32Array, uint8: Uint8Array };
  const found = {};
  for (const { name, dtype, shape, offset } of parts) {
    found[name] = new kinds[dtype](buffer, 8 + length + offset, shape.reduce((a, b) => a * b, 1));
  }
  return found;
}

export async function blob(path) { return (await request("GET", path)).blob(); }

/* Follow a long job that `begin()` starts; `tell(job)` hears of its progress, `cancelled()` says whether to stop it. */
export async function job(begin, tell, cancelled) {
  let state = await begin(), asked = false;
  while (state.state === "running") {
    tell(state);
    await pause(300);
    if (cancelled() && !asked) {
      asked = true;
      state = await (await request("DELETE", `api/jobs/${state.job}`)).json();
    } else {
      state = await get(`api/jobs/${state.job}`);
    }
  }
  changed();  // what the job made may be undone, and the list of scans tells of it
  if (state.state === "cancelled") throw new Cancelled();
  if (state.state === "failed") throw new Refusal(state.error ?? { cause: t("It did not work") });
  return state.result;
}

/* Save an answer of the server as a file of the browser. */
export async function download(method, path, body, fallback) {
  const answer = await request(method, path, { body });
  const named = /filename\*=UTF-8''([^;]+)/.exec(answer.headers.get("Content-Disposition") ?? "");
  saveBlob(await answer.blob(), named ? decodeURIComponent(named[1]) : fallback);
}

export function saveBlob(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/* Of many calls in a row only the newest counts: one runs, the last one waits, the others are dropped. */
export function newest(work) {
  let running = false, waiting = null;
  return async function ask(...given) {
    if (running) { waiting = given; return; }
    running = true;
    try {
      await work(...given);
    } finally {
      running = false;
      if (waiting) { const next = waiting; waiting = null; ask(...next).catch(() => {}); }  // whoever asked has gone on
    }
  };
}
