"""Jinja with llama.cpp b11192's semantics.

llama.cpp has an engine of its own for chat templates, which differs from Jinja2 in ways that affect the prompt:
strings are bytes, a `set` in a loop lasts into the next iteration, a loop over a string is an error, macros see their
caller's names, a member named like a method is the method, `None` prints nothing, lists print their items. So Jinja2's
sandboxed environment only parses a template here, and `interpreter` evaluates the syntax tree, counting steps and
bytes.

    budget       limits of one rendering
    values       the values a template computes with
    builtins     filters, methods, tests and functions
    reader       a template's source to a checked syntax tree
    interpreter  a syntax tree and variables to text
"""
