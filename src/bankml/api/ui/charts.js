// ---- charts

const CHARTS = [
  {id: "rate", name: "Generation", unit: "tokens/s", of: record => record.predicted_per_second, digits: 1},
  {id: "ttft", name: "Time to first token", unit: "ms", of: record => record.ttft_ms, digits: 0},
  {id: "cache", name: "Prompt cached", unit: "%", digits: 0, most: 100,
    of: record => record.prompt_tokens && known(record.cached_tokens) ? 100 * record.cached_tokens / record.prompt_tokens : null},
];

function chart(id, name) {
  const made = element("figure", {id: `chart-${id}`}, element("h3", {textContent: name, id: `name-${id}`}),
    element("p", {className: "now"}), drawn("svg", {viewBox: "0 0 160 56", preserveAspectRatio: "none", role: "img"}),
    element("figcaption"));
  $("charts").append(made);
}

function fill(id, value, unit, label, caption, shapes) {
  const [, now, svg, note] = $(`chart-${id}`).children;
  now.replaceChildren(value, " ", element("small", {textContent: unit}));
  svg.setAttribute("aria-label", label);
  svg.replaceChildren(...shapes, drawn("line", {class: "base", x1: 0, x2: 160, y1: 55.5, y2: 55.5}));
  note.textContent = caption;
}

/* The native engine's answers as the server measured them. Of llama-server's this page knows its own: the time to the
   first token by their receipts, the rest as the engine tells it. */
function measurements() {
  return state.about.upstream ? state.own.map(own => own.measured) : state.records;
}

function showCharts() {
  for (const {id, name, unit, of, digits, most} of CHARTS) {
    const live = id === "rate" && state.live !== null;
    const values = measurements().slice(live ? 1 - BARS : -BARS).map(of);
    if (live) values.push(state.live);
    if (!changed(id, [live, values])) continue;
    const measured = values.filter(known), last = measured.at(-1), top = most ?? Math.max(...measured, 0);
    const range = `${number(Math.min(...measured), digits)} to ${number(Math.max(...measured), digits)}, last ${measured.length}`;
    const caption = live ? "of the answer being written" : measured.length > 1 ? range : measured.length ? "one answer" : "nothing measured yet";
    const label = `${name}: ${measured.length ? `${number(last, digits)} ${unit}; ` : ""}${caption}`;
    fill(id, number(last, digits), unit, label, caption, bars(values, top, live));
  }
  const rss = state.usage.map(usage => usage.processes.reduce((sum, each) => sum + (each.rss_bytes ?? 0), 0));
  if (rss.length && changed("memory", rss)) {
    const [value, unit] = bytes(rss.at(-1)).split(" ");
    const names = state.usage.at(-1).processes.map(each => each.name).join(" + ");
    fill("memory", value, unit, `Resident memory of ${names}: ${value} ${unit}`, names, line(rss));
  }
  const old = state.lost || state.paused;
  $("charts").classList.toggle("old", old);
  $("seen-note").textContent = old ? `${state.paused ? "paused" : "no answer"} since ${clock(state.seen)}`
    : state.about.upstream ? "of this page's answers" : counted(state.totals.completions, "completion");
}

function bars(values, top, live) {
  const wide = 160 / BARS, first = BARS - values.length;
  return values.map((value, at) => {
    const tall = known(value) && top > 0 ? Math.max(1.5, 54 * value / top) : 0;
    const last = at === values.length - 1;
    return drawn("rect", {class: !last ? "bar faint" : live ? "bar live" : "bar", x: (first + at) * wide + .5, y: 55 - tall, width: wide - 1, height: tall});
  });
}

function line(values) {
  if (values.length === 1) return bars(values, values[0] * 1.15);
  const top = Math.max(...values) * 1.15 || 1, first = SAMPLES - values.length;
  const points = values.map((value, at) => `${((first + at) * 160 / (SAMPLES - 1)).toFixed(1)},${(55 - 54 * value / top).toFixed(1)}`);
  const left = points[0].split(",")[0];
  return [drawn("polygon", {class: "area", points: `${left},55 ${points.join(" ")} 160,55`}),
    drawn("polyline", {class: "line", points: points.join(" ")})];
}

