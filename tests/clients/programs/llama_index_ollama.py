"""Its default context, 2^31 - 1 or what /api/show says, is more than the server has."""

from llama_index.core.llms import ChatMessage
from llama_index.llms.ollama import Ollama
from question import ADDRESS, MODEL, MOST, PROMPT, report

model = Ollama(model=MODEL, base_url=ADDRESS, temperature=0.0, additional_kwargs={"num_predict": MOST})
report(text="".join(part.delta or "" for part in model.stream_chat([ChatMessage(role="user", content=PROMPT)])))
