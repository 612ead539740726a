// Elements, without a framework: made by `el`, replaced by `show` only where what they show has changed.

/** An element: el("p", {class: "x", onclick: f, hidden: true}, "text", child, ..). Text is never read as HTML. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

const shown = new WeakMap();

/** Puts new children into a place, unless they were made for the same `key`. Focus and open folds are kept by id. */
export function show(place, key, make) {
  const text = JSON.stringify(key);
  if (shown.get(place) === text) return;
  shown.set(place, text);
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...place.querySelectorAll("details[open][id]")].map((fold) => fold.id);
  place.replaceChildren(...[make()].flat(Infinity).filter(Boolean));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

export const size = (bytes) =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(1, Math.round(bytes / 1e3))} kB`;

export const date = (seconds) =>
  new Date(1000 * seconds).toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

export const duration = (seconds) => {
  const whole = Math.max(0, Math.round(seconds));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
};

/** A number with so many decimals and a typographic minus sign; a dash for none. */
export const fixed = (value, decimals) => (value == null ? "\u2013" : value.toFixed(decimals).replace("-", "\u2212"));
