"""A model as Hugging Face's libraries save it (a folder of JSON and safetensors files), made into an F16 GGUF."""
