"""The stub src/bankml/_native.pyi says what the compiled module has: every name, every parameter."""

import ast
import inspect
import re
from pathlib import Path

import bankml
from bankml import _native

WITHOUT_A_CONSTRUCTOR = (_native.WeightFormat, _native.CacheFormat, _native.RopeShape)
STUB = ast.parse((Path(bankml.__file__).parent / "_native.pyi").read_text())


def parameters(function):
    """The names of a stub function's parameters, without self."""
    given = [a.arg for a in function.args.posonlyargs + function.args.args + function.args.kwonlyargs]
    return tuple(name for name in given if name != "self")


def stubbed():
    """name -> the parameter lists of its overloads; None for what is no function."""
    found = {}
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(parameters(node))
        elif isinstance(node, ast.ClassDef):
            found[node.name] = None
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    a_property = any(isinstance(d, ast.Name) and d.id == "property" for d in member.decorator_list)
                    name = f"{node.name}.{member.name}"
                    if a_property:
                        found[name] = None
                    else:
                        found.setdefault(name, []).append(parameters(member))
    return found


def compiled_parameters(function):
    """Of each overload, out of nanobind's signature: `def name(a: type[of, it], b: type = default) -> None`."""
    lists = []
    for full, *_ in function.__nb_signature__:
        signature = full
        while (shorter := re.sub(r"\[[^][]*\]|(?<=\W)\([^()]*\)", "", signature)) != signature:
            signature = shorter
        inside = signature[signature.index("(") + 1 : signature.index(")")]
        names = [part.split(":")[0].strip() for part in inside.split(",")]
        lists.append(tuple(name for name in names if name not in ("self", "", "/", "*")))
    return lists


def compiled():
    found = {}
    for name, value in vars(_native).items():
        if name.startswith("__"):
            continue
        if inspect.isclass(value):
            found[name] = None
            for member, held in vars(value).items():
                if member == "__init__":
                    if not issubclass(value, WITHOUT_A_CONSTRUCTOR):
                        found[f"{name}.{member}"] = compiled_parameters(held)
                elif not member.startswith("__"):
                    is_function = hasattr(held, "__nb_signature__") and callable(held)
                    found[f"{name}.{member}"] = compiled_parameters(held) if is_function else None
                elif member == "__len__":
                    found[f"{name}.{member}"] = compiled_parameters(held) if hasattr(held, "__nb_signature__") else [()]
        else:
            found[name] = compiled_parameters(value)
    return found


def test_the_stub_has_the_modules_names():
    assert set(stubbed()) == set(compiled())


def test_the_stub_has_the_modules_parameters():
    inside = compiled()
    odd = {
        name: (want, inside[name])
        for name, want in stubbed().items()
        if want is not None and sorted(map(len, want)) != sorted(map(len, inside[name]))
    }
    assert not odd


def test_parameters_that_have_names_have_the_stubs():
    inside = compiled()
    odd = {
        name: (want, inside[name])
        for name, want in stubbed().items()
        if want is not None
        and any(not got.startswith("arg") for one in inside[name] for got in one)
        and sorted(want) != sorted(inside[name])
    }
    assert not odd
