// Vercel's AI SDK: a tool that is called, its result, and an object by a schema.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [address, name] = process.argv.slice(2);
const provider = createOpenAICompatible({ name: "bankml", baseURL: `${address}/v1`, supportsStructuredOutputs: true });
const schema = z.object({ city: z.enum(["Oslo", "Rome"]), days: z.number().int().min(1).max(7) });
const called = [];
const weather = tool({
  description: "The weather.",
  inputSchema: schema,
  execute: async (given) => {
    called.push(schema.safeParse(given).success);
    return "rain";
  },
});
const question = { model: provider(name), prompt: "where is the rain?", temperature: 0, maxOutputTokens: 200, maxRetries: 0 };
const agent = { ...question, tools: { weather }, stopWhen: stepCountIs(3) };
const whole = await generateText(agent);
const streamed = streamText(agent);
let text = "";
for await (const part of streamed.textStream) {
  text += part;
}
const { object } = await generateObject({ ...question, schema });
console.log(JSON.stringify({ after: whole.text, text, called, object: schema.safeParse(object).success }));
