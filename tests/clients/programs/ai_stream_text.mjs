// Vercel's AI SDK with the provider for servers of OpenAI's API.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const [address, model] = process.argv.slice(2);
const provider = createOpenAICompatible({ name: "bankml", baseURL: `${address}/v1`, includeUsage: true });
const result = streamText({
  model: provider(model),
  prompt: "where is the rain?",
  maxOutputTokens: 12,
  temperature: 0,
  maxRetries: 0,
  onError: ({ error }) => {
    throw error;
  },
});
let text = "";
for await (const part of result.textStream) {
  text += part;
}
console.log(JSON.stringify({ text, finish: await result.finishReason, counted: (await result.usage).outputTokens }));
