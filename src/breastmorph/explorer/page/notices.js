/* What the page tells its user: status, errors with what to do, work in progress with a way to stop it. */

import { t } from "./language.js";
import { part } from "./elements.js";
import { sentence } from "./figures.js";
import { Cancelled, isPast, job, post, Refusal } from "./server.js";

let working = "";  // what the status says while something runs

export function say(text) { part("status").textContent = text; }

export function clearError() { part("error").hidden = true; }

export function complain(error) {
  if (isPast(error)) return;
  if (error instanceof Cancelled) { say(t("Stopped.")); return; }
  if (!(error instanceof Refusal)) console.error(error);
  const { cause, remedy } = error instanceof Refusal ? error
    : { cause: t("Something went wrong on this page"), remedy: t("Reload the page. Your session is kept.") };
  part("error-cause").textContent = sentence(cause);
  part("error-remedy").textContent = sentence(remedy);
  part("error").hidden = false;
  if (part("status").textContent === working) say(t("It did not work: see the message."));
  part("panels").scrollTop = 0;
}

/* Run something for the user; what goes wrong is shown, nothing is thrown. Returns whether it went well. */
export async function attempt(work) {
  try {
    clearError();
    await work();
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

let stopping = false, depth = 0;

function showBusy(title, progress, step, stoppable) {
  part("busy").hidden = false;
  part("busy-title").textContent = title;
  part("busy-step").textContent = step;
  part("busy-cancel").hidden = !stoppable;
  const bar = part("busy-bar"), known = typeof progress === "number";
  bar.classList.toggle("unknown", !known);
  bar.firstElementChild.style.width = known ? `${Math.round(100 * progress)}%` : "";
  if (known) bar.setAttribute("aria-valuenow", Math.round(100 * progress));
  else bar.removeAttribute("aria-valuenow");
}

/* Show that something goes on while `work` runs. */
export async function busy(title, work) {
  depth += 1;
  say(working = title);
  document.body.setAttribute("aria-busy", "true");
  showBusy(title, null, "", false);
  try {
    return await work();
  } finally {
    depth -= 1;
    if (part("status").textContent === title) say("");  // it is over, and nobody has said more
    if (!depth) {
      part("busy").hidden = true;
      document.body.removeAttribute("aria-busy");
    }
  }
}

/* A job of the server with its progress and a Cancel button; `begin` starts it. */
export function follow(title, begin) {
  stopping = false;
  return busy(title, () => job(begin,
    state => showBusy(title, state.progress, stopping ? t("Stopping") : t(state.step ?? ""), true), () => stopping));
}

export const runJob = (title, path, body = {}) => follow(title, () => post(path, body));

part("busy-cancel").addEventListener("click", () => { stopping = true; part("busy-step").textContent = t("Stopping"); });
part("error-close").addEventListener("click", clearError);
