"""Jinja as llama.cpp b11192 understands it.

llama.cpp has an engine of its own for chat templates, and it differs from Jinja2 in ways that reach the prompt:
strings are bytes, a `set` in a loop lasts into the next turn, a loop over a string is an error, macros see their
caller's names, a member named like a method is the method, `None` prints nothing, lists print their items. So Jinja2's
sandboxed environment only reads a template here, and `interpreter` walks what it read, counting steps and bytes on the
way.

    budget       what one rendering may cost
    values       the values a template computes with
    builtins     filters, methods, tests and functions
    reader       a template's source to a checked syntax tree
    interpreter  a syntax tree and variables to text
"""
