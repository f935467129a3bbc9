const SHOWN = 12, BARS = 24, SAMPLES = 60, EVERY = 1000, PATIENCE = 2000;
const $ = id => document.getElementById(id);
const state = {
  about: null, records: [], totals: null, usage: [], conversation: [], own: [], asking: null,
  live: null, paused: false, open: new Set(), lost: false, seen: null, looks: 0, heard: 0,
};

// ---- elements: text is only ever set as text

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value; else made.setAttribute(key, value);
  }
  made.append(...children.filter(child => child !== null));
  return made;
}

function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function fact(name, ...value) {
  return element("div", {}, element("dt", {textContent: name}), element("dd", {}, ...value));
}

function wholeFact(name, ...value) {
  return Object.assign(fact(name, ...value), {className: "whole"});
}

function moment(iso) {
  return element("time", {dateTime: iso, textContent: iso.replace("T", " ").replace("Z", " UTC")});
}

function hash(what, value) {
  const copy = element("button", {type: "button", className: "small", textContent: "Copy", "aria-label": `Copy ${what}`});
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(value);
      copy.textContent = "Copied";
      say(`${what} copied`);
    } catch {
      getSelection().selectAllChildren(copy.previousElementSibling);
      copy.textContent = "Selected";
      say(`${what} selected`);
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  return element("div", {className: "hash"}, element("code", {textContent: value}), copy);
}

function mark(verdict, words) {
  const sign = {good: "✓ ", bad: "✗ "}[verdict] || "";
  return element("span", {className: `mark ${verdict}`, textContent: sign + words});
}

/* Two voices, so that news of the server does not take the words from news of an answer. */
function say(words) { $("spoken").textContent = words; }
function tell(words) { $("told").textContent = words; }

/* New children for old: those that would look the same stay, and so does the focus. */
function refill(box, ...children) {
  const held = box.contains(document.activeElement) ? named(document.activeElement) : null;
  const old = [...box.children];
  children.forEach((child, at) => {
    if (at >= old.length) box.append(child);
    else if (!old[at].isEqualNode(child)) old[at].replaceWith(child);
  });
  old.slice(children.length).forEach(each => each.remove());
  if (held === null || box.contains(document.activeElement)) return;
  [...box.querySelectorAll("button, summary")].find(each => named(each) === held)?.focus({preventScroll: true});
}

function named(control) {
  return `${control.closest("[data-row]")?.dataset.row} ${control.getAttribute("aria-label") ?? control.localName}`;
}

// ---- numbers

const known = value => typeof value === "number" && Number.isFinite(value);
const number = (value, digits = 1) => known(value)
  ? value.toLocaleString("en", {maximumFractionDigits: Math.abs(value) < 1000 ? digits : 0}) : "–";
const counted = (count, one) => `${number(count, 0)} ${one}${count === 1 ? "" : "s"}`;
const milliseconds = value => !known(value) ? "–" : value < 1000 ? `${number(value, 0)} ms` : `${number(value / 1000, 2)} s`;
const clock = seconds => new Date(seconds * 1000).toLocaleTimeString("en-GB");

function bytes(value) {
  if (!known(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${number(value, value < 10 && at > 0 ? 2 : value < 100 && at > 0 ? 1 : 0)} ${units[at]}`;
}

