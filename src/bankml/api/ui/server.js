// ---- what the server says

async function look(path) {
  const answer = await fetch(path, {cache: "no-store", signal: AbortSignal.timeout(PATIENCE)});
  if (!answer.ok) throw new Error(`GET ${path} answered ${answer.status}`);
  return answer.json();
}

/* What the server says now: all of it, or only what is verified, which is asked twice as often, so that it is soon seen
   when it changes, and that nobody answers. What comes later than news of a later look is no news. */
async function update(all = true) {
  if (state.paused || document.hidden) return;
  const look_ = ++state.looks;
  const told = await Promise.all(["/bankml", ...(all || !state.totals ? ["/bankml/metrics", "/bankml/usage"] : [])].map(look)).catch(() => null);
  if (look_ < state.heard) return;
  state.heard = look_;
  if (told) heard(...told);
  if (state.lost !== !told) tell(told ? "The server answers again" : "The server does not answer");
  state.lost = !told;
  show();
}

function heard(about, metrics, usage) {
  Object.assign(state, {about, seen: Date.now() / 1000});
  if (!metrics) return;
  Object.assign(state, {records: metrics.completions, totals: metrics.totals});
  if (usage.time !== state.usage.at(-1)?.time) state.usage = [...state.usage, usage].slice(-SAMPLES);
}

// ---- showing it

const shown = new Map();

function changed(what, value) {
  const text = JSON.stringify(value);
  if (shown.get(what) === text) return false;
  shown.set(what, text);
  return true;
}

function show() {
  const {about} = state;
  $("about").textContent = state.lost ? "The server does not answer." : !about ? "Loading…"
    : about.upstream ? `${about.bankml} in front of llama-server` : about.engine;
  hint();
  if (!about) return;
  showVerdict();
  if (changed("verified", about)) showVerified(about);
  showCharts();
  showMachine();
  showAnswers();
}

/* Of what is not looked at, or cannot be, nobody can say that it still is as it was. */
function verdict() {
  const {about} = state;
  if (state.lost) return ["", `no answer since ${clock(state.seen)}`];
  if (state.paused) return ["", `as of ${clock(state.seen)}`];
  if (about.guard !== "play") return ["bad", about.guard];
  if (about.unchanged === false) return ["bad", "changed"];
  if (about.resident !== null) return ["good", "verified"];
  return about.refused ? ["bad", "refused"] : ["", "not in memory"];
}

function showVerdict() {
  const found = verdict();
  if (!changed("verdict", found)) return;
  for (const id of ["guard", "guard-above"]) $(id).replaceWith(Object.assign(mark(...found), {id}));
  if (found[1] === "changed") tell("The model's file changed since it was verified");
}

function showVerified(about) {
  refill($("verified"),
    ...(about.unchanged === false ? [element("p", {className: "whole problem", textContent: "The file changed since it was verified. Nothing is answered with it."})] : []),
    ...(about.refused ? [refused(about.refused)] : []),
    wholeFact("Model", element("span", {className: "mono", textContent: about.model})),
    wholeFact("sha256 of its file, as pinned", hash("the model's sha256", about.model_sha256)),
    wholeFact("File", element("code", {textContent: about.path})),
    wholeFact("Pinned by", element("code", {textContent: about.fork})),
    fact("Verified", moment(about.verified_at)),
    ...(about.signing ? [wholeFact("Key that signs its receipts", hash("the key's id", about.signing.key_id))] : []),
    ...(about.upstream ? [fact("Answered by", `llama-server at ${about.upstream}`),
      element("p", {className: "whole quiet", textContent: "bankML vouches for the file, the way here and the text; the arithmetic is llama-server's."})]
      : [fact("Context", `${number(about.n_ctx, 0)} tokens`), wholeFact("In memory", ...resident(about))]),
  );
  showModels();
}

/* What was asked for last and is not answered with, in the server's words. */
function refused({name, reason, time}) {
  return wholeFact(`${name} was refused`, element("p", {className: "problem", textContent: reason}), moment(time));
}

function resident({resident, model}) {
  if (resident === null) return ["no model; the next question loads one, and verifies its file again"];
  if (!resident?.expires_at) return [resident?.name ?? model];
  return [`${resident.name}, until `, moment(resident.expires_at)];
}

/* What answers, as the page calls it: in front of llama-server the file, for there the names are the engine's. */
function answering({upstream, path, model}) {
  return upstream ? path.split("/").at(-1) : model;
}

function showModels() {
  const {about} = state;
  const every = about.models ?? [{name: answering(about), sha256: about.model_sha256}];
  const here = about.upstream ? answering(about) : about.resident?.name;
  const models = every.map(model => ({...model, here: model.name === here, changed: model.name === here && about.unchanged === false,
    refused: model.name === about.refused?.name}));
  if (!changed("models", models)) return;
  refill($("models"), ...models.map(modelRow));
  const chosen = $("model").value || about.model;
  const askable = models.filter(model => model.here || (model.found !== false && !model.reason)).map(({name}) => name);
  const options = askable.map(name => element("option", {value: name, textContent: name}));
  /* A choice that is gone stays chosen, and says so: the next question is not for another model to answer. */
  if (!askable.includes(chosen)) options.push(element("option", {value: chosen, textContent: `${chosen} (not here any more)`}));
  refill($("model"), ...options);
  $("model").value = chosen;
}

function modelRow({name, base, sha256, found, here, reason, changed, refused}) {
  const words = changed ? mark("bad", "changed") : here ? mark("good", state.about.upstream ? "answers here" : "resident")
    : refused ? mark("bad", "refused") : found === false ? mark("", "file not found") : reason ? mark("", "not played here") : null;
  const row = element("li", {}, element("div", {}, element("span", {className: "name", textContent: name}), words),
    base ? element("span", {className: "quiet", textContent: `laid over ${base}`}) : null,
    reason && !here && found !== false ? element("span", {className: "quiet", textContent: reason}) : null,
    sha256 ? hash(`the sha256 of ${name}`, sha256) : null);
  row.dataset.row = name;
  return row;
}

function showMachine() {
  const usage = state.usage.at(-1);
  if (!usage || !changed("machine", usage)) return;
  const rows = [["Processor", `${number(usage.cpu_percent, 0)} % of ${usage.cores} cores`],
    ["Memory in use", `${bytes(usage.memory.used_bytes)} of ${bytes(usage.memory.total_bytes)}`]];
  if (usage.swap.total_bytes) rows.push(["Swap in use", `${bytes(usage.swap.used_bytes)} of ${bytes(usage.swap.total_bytes)}`]);
  for (const each of usage.processes) {
    rows.push([`${each.name}, process ${each.pid}`, each.rss_bytes === null ? "ended" : `${bytes(each.rss_bytes)}, ${number(each.cpu_percent, 0)} % of a core`]);
  }
  rows.push(["Package power", known(usage.package_watts) ? `${number(usage.package_watts)} W` : "not readable here"]);
  for (const gpu of usage.gpus) rows.push([gpu.name, `${number(gpu.busy_percent, 0)} %, ${bytes(gpu.vram_used_bytes)} of ${bytes(gpu.vram_total_bytes)}`]);
  refill($("machine"), ...rows.map(([name, value]) => fact(name, value)));
}

