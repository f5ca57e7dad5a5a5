/* Numbers and measures in words that people read. */

export const MINUS = "\u2212";

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

const NAMES = {
  "SN-NL": "Sternal notch to left nipple", "SN-NR": "Sternal notch to right nipple", "NL-NR": "Nipple to nipple",
  "SN-XI": "Sternal notch to xiphoid", "NL-LPL": "Left nipple to lower pole", "NR-LPR": "Right nipple to lower pole",
  "NL-IMFL": "Left nipple to fold", "NR-IMFR": "Right nipple to fold", "NL-M": "Left nipple to midline",
  "NR-M": "Right nipple to midline", "base-width-left": "Base width, left", "base-width-right": "Base width, right",
  "projection-left": "Projection, left", "projection-right": "Projection, right",
  "volume-left": "Volume, left breast", "volume-right": "Volume, right breast",
};

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

export const wording = measure => NAMES[measure.name] ?? measure.label ?? measure.name;

/* A sentence with a full stop and a capital letter. */
export function sentence(text) {
  const plain = (text ?? "").trim();
  return !plain ? "" : plain[0].toUpperCase() + plain.slice(1) + (/[.!?]$/.test(plain) ? "" : ".");
}

/* An element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "scope" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/* A labelled slider: label and value above, the slider below. Returns {root, input, show(text)}. */
export function slider({ id, label, min, max, step, value, text, hint = "", centred = false, onInput }) {
  const output = make("output", { className: "value" });
  const input = make("input", { type: "range", id, min, max, step, value });
  input.addEventListener("input", () => onInput(Number(input.value)));
  const show = words => { output.textContent = words; input.setAttribute("aria-valuetext", words); };
  const root = make("div", { className: centred ? "slider centred" : "slider" },
    make("div", { className: "slider-head" }, make("label", { htmlFor: id }, label,
      ...(hint ? [make("small", {}, ` ${hint}`)] : [])), output), input);
  output.htmlFor = id;
  show(text);
  return { root, input, show };
}
