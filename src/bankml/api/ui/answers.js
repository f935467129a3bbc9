// ---- the last answers: this page's own, checked, and those the server's metrics tell of

function key(receipt) { return receipt.request_sha256 && `${receipt.request_sha256} ${receipt.response_sha256}`; }

function lastAnswers() {
  const own = [...state.own];
  const rows = state.records.slice(-SHOWN * 2).map(record => {
    const at = own.findIndex(each => key(each.receipt) === key(record) && Math.abs(each.time - record.time) < 60);
    return {record, own: at < 0 ? null : own.splice(at, 1)[0], time: record.time};
  });
  return [...rows, ...own.map(each => ({record: null, own: each, time: each.time}))]
    .sort((a, b) => b.time - a.time).slice(0, SHOWN);
}

function showAnswers() {
  const rows = lastAnswers();
  if (!changed("answers", rows)) return;
  const whose = state.about.upstream ? "asked from this page" : "whoever asked";
  $("answers-note").textContent = rows.length ? whose : "";
  refill($("answers"), ...(rows.length ? rows.map(answerRow) : [element("li", {className: "quiet", textContent: "None yet."})]));
}

function answerRow({record, own, time}) {
  const row = String(own?.time ?? time), receipt = own?.receipt ?? record;
  const tokens = `${number(receipt.prompt_tokens, 0)} tokens in, ${number(receipt.completion_tokens, 0)} out`;
  const verdict = own ? (own.ok ? mark("good", "matches") : mark("bad", "does not match"))
    : record.finish === "cancelled" ? mark("", "stopped, no receipt") : mark("", "not checked here");
  const rate = (record ?? own.measured).predicted_per_second;
  const details = element("details", {open: state.open.has(row)},
    element("summary", {}, element("time", {textContent: clock(time)}), element("span", {textContent: tokens}),
      known(rate) ? element("span", {className: "quiet", textContent: `${number(rate)} tokens/s`}) : null, verdict),
    element("dl", {className: "facts"}, ...answerFacts(record, own)));
  details.dataset.row = row;
  details.addEventListener("toggle", () => { details.open ? state.open.add(row) : state.open.delete(row); });
  return element("li", {}, details);
}

function answerFacts(record, own) {
  const facts = [];
  if (record) {
    const held = known(record.grammar_ms) ? `; grammar ${milliseconds(record.grammar_ms)}, ${record.resampled} drawn again` : "";
    const energy = known(record.energy_j) ? `; ${number(record.energy_j)} J` : "";
    facts.push(fact("Model", element("span", {className: "mono", textContent: record.model})),
      fact("Tokens", `${record.prompt_tokens} in the prompt, ${record.cached_tokens} of them from the cache; ${record.completion_tokens} generated; ended by ${record.finish}`),
      fact("Times", `first token after ${milliseconds(record.ttft_ms)}; prompt ${milliseconds(record.prompt_ms)}, generation ${milliseconds(record.eval_ms)}${held}${energy}`));
  }
  if (own) return [...facts, ...receiptFacts(own)];
  for (const name of ["request_sha256", "response_sha256"]) if (record[name]) facts.push(fact(name, hash(name, record[name])));
  return facts;
}

const differs = check => check.found !== null && !check.ok;

/* What does not match comes first. */
function receiptFacts({receipt, checks}) {
  const facts = [...checks.filter(differs), ...checks.filter(check => !differs(check))].map(check => {
    const made = fact(check.name, hash(check.name, String(receipt[check.field] ?? "none")));
    made.firstChild.append(mark(check.found === null ? "" : check.ok ? "good" : "bad", check.note));
    if (differs(check) && check.hash) made.lastChild.append(element("p", {className: "problem"}, "computed here: ", element("code", {textContent: check.found})));
    return made;
  });
  const whole = element("pre", {className: "mono receipt", textContent: JSON.stringify(receipt, null, 2)});
  return [...facts, fact("The receipt", whole)];
}

// ---- checking: every hash is computed again

async function sha256(data) {
  const digest = await crypto.subtle.digest("SHA-256", data);
  return [...new Uint8Array(digest)].map(byte => byte.toString(16).padStart(2, "0")).join("");
}

/* The form that a signature covers (RFC 8785): JSON.stringify writes its numbers and texts, sort() its order of names. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map(name => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

const fromHex = text => Uint8Array.from(text.match(/../g) ?? [], pair => parseInt(pair, 16));

/* Whether the receipt is signed by the key that this server shows. */
async function signed({signature, ...covered}, pem) {
  const der = Uint8Array.from(atob(pem.replace(/-----.*?-----|\s/g, "")), letter => letter.charCodeAt(0));
  if (await sha256(der) !== covered.key_id) return "by another key than the server shows";
  if (!/^[0-9a-f]{128}$/.test(signature)) return "not a signature";
  const key = await crypto.subtle.importKey("spki", der, "Ed25519", false, ["verify"]);
  const bytes = new TextEncoder().encode(canonical(covered));
  if (!await crypto.subtle.verify("Ed25519", key, fromHex(signature), bytes)) return "does not match";
  return covered.expires_at && Date.parse(covered.expires_at) <= Date.now() ? `expired ${covered.expires_at}` : "";
}

/* What is found of a signature, as of a hash: null where there is none and the server shows no key. */
async function signatureCheck(receipt) {
  const known = state.about?.signing;
  if (!known && !receipt.signed && !receipt.signature) return null;
  const made = (ok, note, found = note) => ({name: "signature, by the key", field: "key_id", found, hash: false, ok, note});
  if (!known) return made(false, "by a key that the server does not show");
  if (!receipt.signed || !receipt.signature) return made(false, "missing");
  const wrong = await signed(receipt, known.public_key).catch(() => null);
  return wrong === null ? made(false, "cannot be verified here", null) : made(!wrong, wrong || "matches");
}

async function check({receipt, timings}, sent, text) {
  const pinned = [state.about, ...(state.about?.models ?? [])].map(each => each?.model_sha256 ?? each?.sha256).filter(Boolean);
  const able = globalThis.crypto?.subtle !== undefined;
  const compare = (name, field, found, note) => ({name, field, found, hash: true, ok: found === receipt[field],
    note: found === null ? "cannot be computed here" : found === receipt[field] ? note : "does not match"});
  const checks = [
    compare("request_sha256, of the bytes sent", "request_sha256", able ? await sha256(sent) : null, "matches"),
    compare("response_sha256, of the text shown", "response_sha256", able ? await sha256(new TextEncoder().encode(text)) : null, "matches"),
    compare("model_sha256, of the model's file", "model_sha256", pinned.find(each => each === receipt.model_sha256) ?? pinned[0] ?? null, "is a verified file's"),
  ];
  const signature = await signatureCheck(receipt);
  if (signature) checks.push(signature);
  const measured = {ttft_ms: receipt.ttft_ms, prompt_tokens: receipt.prompt_tokens, cached_tokens: timings?.cache_n,
    predicted_per_second: timings?.predicted_per_second};
  return {receipt, checks, measured, ok: checks.every(each => each.ok), time: Date.now() / 1000};
}
