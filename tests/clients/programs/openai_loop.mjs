// The loop of the README, and the streaming helper whose message goes back for the next turn.
import OpenAI from "openai";

const [address, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "where is the rain?" }];
const question = { model, messages, max_tokens: 12, temperature: 0 };

let text = "";
for await (const chunk of await client.chat.completions.create({ ...question, stream: true })) {
  text += chunk.choices[0]?.delta?.content || "";
}
const joined = await client.chat.completions.stream(question).finalMessage();
const next = [...messages, joined, { role: "user", content: "and then?" }];
const again = await client.chat.completions.stream({ ...question, messages: next }).finalMessage();
console.log(JSON.stringify({ text, joined: joined.content, role: joined.role, next_role: again.role }));
