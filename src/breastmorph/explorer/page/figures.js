/* Numbers and measures in words that people read. */

const MINUS = "\u2212";

export function signed(value, digits = 1) {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : (value > 0 ? "+" : MINUS) + text;
}

/* A length or volume with its unit; lengths come in mm and are shown in cm. */
export function quantity(value, unit, digits = 1) {
  if (value === null || value === undefined || Number.isNaN(value)) return "not known";
  if (unit === "mm") return `${(value / 10).toFixed(digits)} cm`;
  if (unit === "cc") return `${value.toFixed(0)} cc`;
  return `${value.toFixed(digits)} ${unit}`;
}

/* Words for the short names of measures: the server's, from the start of the page. */
export const NAMES = {};
export const wording = measure => NAMES[measure.name] ?? measure.name;

/* Of pairs of measures, left minus right. */
const PAIRS = {
  "SN-N": "sternal notch to nipple", "N-LP": "nipple to lower pole", "N-IMF": "nipple to fold", "N-M": "nipple to midline",
  "base-width": "base width", projection: "projection", volume: "volume",
};
export const pairWording = measure => `Left minus right: ${PAIRS[measure.name] ?? measure.name}`;

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
