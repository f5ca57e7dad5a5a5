/* Numbers and measures in words that people read. */

import { decimal, t } from "./language.js";

const MINUS = "\u2212";

export function signed(value, digits = 1) {
  const text = decimal(Math.abs(value), digits);
  return Number(Math.abs(value).toFixed(digits)) === 0 ? text : (value > 0 ? "+" : MINUS) + text;
}

/* A length or volume with its unit; lengths come in mm and are shown in cm. */
export function quantity(value, unit, digits = 1) {
  if (value === null || value === undefined || Number.isNaN(value)) return t("not known");
  if (unit === "mm") return `${decimal(value / 10, digits)} cm`;
  if (unit === "cc") return `${decimal(value, 0)} ${t("cc")}`;
  if (unit === "cm2") return `${decimal(value, 0)} cm\u00b2`;
  return `${decimal(value, digits)} ${t(unit)}`;
}

/* A measure with its standard deviation as every table has it; a difference has its sign. */
export function withSpread(measure, difference = false) {
  if (!measure || measure.value === null) return t("not known");
  const [number, unit] = quantity(measure.value, measure.unit).split(" "), plain = number.replace("-", MINUS);
  const shown = difference && measure.value > 0 ? `+${plain}` : plain;
  const spread = measure.sd === null || measure.sd === undefined ? "" : ` \u00b1 ${quantity(measure.sd, measure.unit).split(" ")[0]}`;
  return `${shown}${spread} ${unit}${measure.predicted ? ` ${t("predicted")}` : ""}`;
}

/* Words for the short names of measures: the server's, from the start of the page. */
export const NAMES = {};
export const wording = measure => t(NAMES[measure.name] ?? measure.name);

/* Of pairs of measures, left minus right. */
export const PAIRS = {};
export const pairWording = measure => `${t("Left minus right")}: ${t(PAIRS[measure.name] ?? measure.name)}`;

/* A number as people write it, with a decimal point or a decimal comma; NaN for anything else. */
export function typed(text) {
  const plain = text.trim().replace(",", ".");
  return /^\d+(\.\d*)?$|^\.\d+$/.test(plain) ? Number(plain) : NaN;
}

/* A sentence with a full stop and a capital letter. */
export function sentence(text) {
  const plain = (text ?? "").trim();
  return !plain ? "" : plain[0].toUpperCase() + plain.slice(1) + (/[.!?]$/.test(plain) ? "" : ".");
}

/* What is wrong and what to do, as sentences. */
export const sentences = (...texts) => texts.map(sentence).filter(Boolean).join(" ");
