"""Schemas with OpenAI's `strict: true`: every keyword is enforced by the grammar, or refused by its name and path.

llama.cpp b11192's conversion (the package above) drops what its grammar rules cannot hold; here a value that the
grammar accepts is always valid, though not every valid value is accepted.
"""

from bankml.grammar.json_schema.strict.converter import strict_rule

__all__ = ["strict_rule"]
