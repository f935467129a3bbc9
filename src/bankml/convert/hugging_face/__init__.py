"""Converts a model in Hugging Face's format (a folder of JSON and safetensors files) to an F16 GGUF."""
