// ---- asking

function requestBody() {
  const messages = [...state.conversation];
  if ($("system").value.trim()) messages.unshift({role: "system", content: $("system").value});
  const body = {messages, stream: true};
  if ($("model").value && !state.about.upstream) body.model = $("model").value;
  for (const [field, id] of [["temperature", "temperature"], ["max_tokens", "most"], ["seed", "seed"]]) {
    if ($(id).value !== "") body[field] = Number($(id).value);
  }
  return body;
}

/* An error with words for a person: the server's or ours, never the browser's. */
class Told extends Error {}

const instead = words => error => { throw error.name === "AbortError" ? error : new Told(words); };
const BROKE_OFF = "The answer broke off before its end.";

async function* events(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let held = "";
  for (;;) {
    const {done, value} = await reader.read().catch(instead(BROKE_OFF));
    held += decoder.decode(value, {stream: !done});
    const parts = held.split(/\r?\n\r?\n/);
    held = parts.pop();
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter(row => row.startsWith("data:")).map(row => row.slice(5).trim()).join("\n");
      if (data) yield data;
    }
    if (done) return;
  }
}

function parsed(data) {
  try {
    return Object(JSON.parse(data));
  } catch {
    throw new Told("The answer has an event in it that cannot be read.");
  }
}

/* The answer, read to its very end. `progress` gets each part of its text, and of what the model thinks before it, which
   is no part of the text and not hashed. */
async function receive(response, progress) {
  const got = {text: "", receipt: null, timings: null, finish: null, whole: false};
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") got.whole = true;
      if (got.whole) continue;
      const found = parsed(data);
      if (found.error) throw new Told(found.error.message ?? "The server failed at this answer.");
      if (found.bankml_receipt) got.receipt = found.bankml_receipt;
      for (const {delta, finish_reason} of found.choices ?? []) {
        if (delta?.reasoning_content) progress("thought", delta.reasoning_content);
        if (delta?.content) { got.text += delta.content; progress("text", delta.content); }
        got.finish = finish_reason ?? got.finish;
      }
      got.timings = found.timings ?? got.timings;
    }
  } catch (error) {
    if (!got.whole) throw error;
  }
  if (!got.whole) throw new Told(BROKE_OFF);
  return got;
}

/* What is added moves the conversation on for one who is at its end, and not for one who has scrolled up. */
function adding(change) {
  const talk = $("talk"), low = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 4;
  change();
  if (low) talk.scrollTop = talk.scrollHeight;
}

/* What is wrong is brought into view, wherever its reader is. */
function reveal(first, last) {
  const talk = $("talk");
  talk.scrollTop += first.getBoundingClientRect().top - talk.getBoundingClientRect().top - 12;
  for (const each of [last, first]) each.scrollIntoView({block: "nearest"});
}

function message(who, text) {
  const body = element("div", {className: "text", dir: "auto", textContent: text}), after = element("div", {className: "after"});
  const made = element("div", {className: `said ${who === "You" ? "user" : "model"}`}, element("div", {className: "who", textContent: who}), body, after);
  $("empty").hidden = true;
  $("talk").append(made);
  $("talk").scrollTop = $("talk").scrollHeight;
  return {made, body, after};
}

/* What a model thinks before it answers: shown when asked for. */
function thinking(body) {
  const name = element("summary", {className: "quiet", textContent: "Thinking…"});
  const words = element("div", {className: "thought", dir: "auto"});
  body.before(element("details", {}, name, words));
  return {words, end: () => { name.textContent = "What it thought"; }};
}

/* Parts of the answer come faster than a screen shows them: they are put on it once a frame. */
function shower(body) {
  const began = performance.now(), waiting = {text: "", thought: ""};
  let parts = 0, due = false, first = 0, thought = null;
  const put = () => {
    due = false;
    if (!waiting.text && !waiting.thought) return;
    adding(() => {
      if (waiting.thought) (thought ??= thinking(body)).words.append(waiting.thought);
      if (waiting.text) { thought?.end(); body.classList.remove("waits"); body.append(waiting.text); }
    });
    waiting.text = waiting.thought = "";
    if (parts > 1) {
      state.live = (parts - 1) * 1000 / (performance.now() - first);
      const doing = body.textContent ? "Generating" : "Thinking";
      $("keys").textContent = `${doing}, ${number(state.live)} tokens/s; first after ${milliseconds(first - began)}`;
      if (state.about) showCharts();
    }
  };
  const push = (kind, text) => {
    if (!parts) first = performance.now();
    parts += 1;
    waiting[kind] += text;
    if (!due) { due = true; requestAnimationFrame(put); }
  };
  const end = () => adding(() => { put(); thought?.end(); body.classList.remove("waits"); });
  return {push, end};
}

async function ask(question) {
  state.conversation.push({role: "user", content: question});
  const asked = message("You", question);
  const body = requestBody();
  const sent = new TextEncoder().encode(JSON.stringify(body));
  const shown = message(body.model ?? (state.about ? answering(state.about) : "Model"), "");
  shown.body.classList.add("waits");
  const {push, end} = shower(shown.body);
  state.asking = new AbortController();
  busy(true);
  try {
    const response = await fetch("/v1/chat/completions", {method: "POST", body: sent, signal: state.asking.signal,
      headers: {"Content-Type": "application/json"}}).catch(instead("The server does not answer."));
    if (!response.ok) throw new Told((await response.json().catch(() => null))?.error?.message ?? `The server answered ${response.status}.`);
    const got = await receive(response, push);
    end();
    await finished(got, sent, shown);
  } catch (error) {
    end();
    broken(error, shown, asked);
  } finally {
    state.asking = state.live = null;
    busy(false);
    if (state.about) showCharts();
    update();
  }
}

async function finished(got, sent, {made, body, after}) {
  state.conversation.push({role: "assistant", content: got.text});
  if (!got.receipt) {
    adding(() => after.append(mark("bad", "no receipt came")));
    reveal(after, after);
    say("Answer complete, but no receipt came");
    return;
  }
  const own = await check(got, sent, body.textContent);
  state.own = [...state.own, own].slice(-BARS);
  const wrong = own.checks.filter(differs).map(each => each.name);
  const judged = wrong.length ? ["bad", "receipt does not match"] : own.ok ? ["good", own.receipt.signed ? "receipt matches and is signed" : "receipt matches"]
    : ["", "receipt not checked: this browser cannot do it here"];
  const rate = got.timings?.predicted_per_second;
  const counts = [counted(got.receipt.completion_tokens, "token"), known(rate) ? `${number(rate)} tokens/s` : "", got.finish === "length" ? "cut at the limit" : ""];
  const facts = receiptFacts(own);
  adding(() => {
    after.append(mark(...judged), counts.filter(Boolean).join(" · "));
    made.append(element("details", {open: !own.ok}, element("summary", {className: "quiet", textContent: "Receipt"}), element("dl", {className: "facts"}, ...facts)));
  });
  if (wrong.length) reveal(after, facts[wrong.length - 1]);
  const told = [counted(got.receipt.completion_tokens, "token"), judged[1], ...wrong.map(name => `false is ${name}`)];
  say(`Answer complete, ${told.join(", ")}. ${body.textContent.slice(0, 500)}`);
  if (state.about) showAnswers();
}

/* What was said of a stopped answer stays in the conversation, as the model's words so far. A question of which nothing
   was said is no part of it, and goes back to where it was typed. */
function broken(error, {body, after}, asked) {
  const text = body.textContent, stopped = error.name === "AbortError";
  const back = !text && !$("question").value;
  adding(() => {
    if (text) {
      state.conversation.push({role: "assistant", content: text});
    } else {
      state.conversation.pop();
      body.hidden = true;
      asked.after.append(mark("", "not answered"), "left out of the conversation");
    }
    if (!stopped) after.append(element("span", {className: "problem", textContent: error.message}));
    else after.append(mark("", text ? "stopped: no receipt, for the answer is not whole" : "stopped before its first word"));
  });
  if (back) $("question").value = asked.body.textContent;
  say(`${stopped ? "Stopped." : `The answer failed: ${error.message}`}${back ? " The question is in the box again." : ""}`);
}

function busy(is) {
  $("send").disabled = is;
  $("stop").disabled = !is;
  $("anew").disabled = is;
  hint();
  if (is) say("Asked; the answer is being written");
  if (document.activeElement === document.body) $("question").focus();
}

/* Below the box: how it goes on, unless the parts of an answer that come say so. */
function hint() {
  if (state.live !== null && !state.lost) return;
  $("keys").textContent = state.lost ? `The server does not answer; ${state.asking ? "the question waits" : "what is typed stays here"}.`
    : state.asking ? "Waiting for the first token…" : "Enter sends, Shift+Enter is a new line, Escape stops.";
}

function stop() { state.asking?.abort(); }

// ---- what a person does

$("ask").addEventListener("submit", event => {
  event.preventDefault();
  const question = $("question").value;
  if (state.asking || !question.trim()) return;
  $("question").value = "";
  ask(question);
});
$("ask").addEventListener("invalid", event => { event.target.closest("details")?.setAttribute("open", ""); }, true);
$("question").addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("ask").requestSubmit();
});
document.addEventListener("keydown", event => { if (event.key === "Escape") stop(); });
$("stop").addEventListener("click", () => { $("question").focus(); stop(); });
$("anew").addEventListener("click", () => {
  state.conversation = [];
  $("talk").replaceChildren($("empty"));
  $("empty").hidden = false;
  $("question").focus();
  say("New conversation");
});
$("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  $("pause").setAttribute("aria-pressed", String(state.paused));
  show();
  update();
});

const THEMES = ["system", "light", "dark"];

function stored(value) {
  try {
    if (value === undefined) return localStorage.getItem("bankml-theme");
    localStorage.setItem("bankml-theme", value);
  } catch { /* a browser that stores nothing forgets it */ }
  return null;
}

function wear(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Theme: ${theme}`;
}

let theme = THEMES.includes(stored()) ? stored() : "system";
wear(theme);
$("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  wear(theme);
  stored(theme);
});

chart("rate", "Generation");
chart("ttft", "Time to first token");
chart("memory", "Memory");
chart("cache", "Prompt cached");
document.addEventListener("visibilitychange", () => update());
let beats = 0;
setInterval(() => update(++beats % 2 === 0), EVERY);
update();
