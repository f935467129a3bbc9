// Everything that Ollama's npm client can ask of a server: node ollama_client.mjs URL MODEL OTHER. Prints one JSON object.
import { Ollama } from "ollama"

const [host, model, other] = process.argv.slice(2)
const ollama = new Ollama({ host })
const messages = [{ role: "user", content: "where is the rain?" }]
const options = { temperature: 0, num_predict: 12 }
const schema = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] }

const names = async () => (await ollama.list()).models.map((one) => one.model)

async function joined(stream, text) {
  let all = ""
  for await (const part of stream) all += text(part)
  return all
}

async function refusal(call, word) {
  try {
    await call()
    return [200, false]
  } catch (error) {
    return [error.status_code, error.message.includes(word)]
  }
}

const said = { listed: await names() }
said.family = (await ollama.show({ model: other })).details.family
await ollama.generate({ model: other, prompt: "", keep_alive: "1m" })
said.running = (await ollama.ps()).models.map((one) => one.name)
said.chat = (await ollama.chat({ model, messages, options })).message.content
said.streamedChat = await joined(await ollama.chat({ model, messages, options, stream: true }), (p) => p.message.content)
said.generate = (await ollama.generate({ model, prompt: "the rain", options })).response
const stream = await ollama.generate({ model, prompt: "the rain", options, stream: true })
said.streamedGenerate = await joined(stream, (part) => part.response)
const held = { temperature: 0, num_predict: 60 }
said.schema = (await ollama.chat({ model, messages, format: schema, options: held })).message.content
said.created = (await ollama.create({ model: "npm-man", from: model, system: "Be brief." })).status
said.steps = []
for await (const step of await ollama.create({ model: "npm-man", from: model, system: "Be brief.", stream: true }))
  said.steps.push(step.status)
await ollama.copy({ source: "npm-man", destination: "npm-twin" })
said.withTwin = await names()
said.system = (await ollama.show({ model: "npm-twin" })).system
await ollama.delete({ model: "npm-man" })
await ollama.delete({ model: "npm-twin" })
said.after = await names()
said.unload = (await ollama.chat({ model, messages: [], keep_alive: 0 })).done_reason
said.load = (await ollama.chat({ model, messages: [] })).done_reason
said.errors = [
  await refusal(() => ollama.chat({ model, messages, options: { mirostat: 3 } }), "mirostat"),
  await refusal(() => ollama.chat({ model: "nobody", messages }), "nobody"),
  await refusal(() => ollama.embed({ model, input: "x" }), "embeddings"),
]
console.log(JSON.stringify(said))
