"""A template's source to a syntax tree, by Jinja2's sandboxed environment; refuses everything unsupported."""

from jinja2 import TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bankml.errors import Refused
from bankml.text.jinja.budget import shortened

MAX_SOURCE = 256 << 10


class _Generation(Extension):
    """`{% generation %}` marks text for training; here only its body counts."""

    tags = {"generation"}  # noqa: RUF012 (jinja2 declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation], optimized=False, autoescape=False
)

_KNOWN = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.For,
    nodes.Break,
    nodes.Continue,
    nodes.Macro,
    nodes.CallBlock,
    nodes.FilterBlock,
    nodes.Assign,
    nodes.AssignBlock,
    nodes.Name,
    nodes.NSRef,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.Dict,
    nodes.Pair,
    nodes.Keyword,
    nodes.CondExpr,
    nodes.Filter,
    nodes.Test,
    nodes.Call,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Concat,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.Mod,
    nodes.Neg,
    nodes.Pos,
)


def read(source: str) -> nodes.Template:
    """Raises Refused, with the line, for a source that is too long, does not parse, or uses what llama.cpp does not
    support."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE:
        raise Refused(f"the chat template is {size} bytes long, the limit is {MAX_SOURCE}")
    try:
        tree = _ENVIRONMENT.parse(source)
        for node in _walk(tree):
            _check(node)
    except TemplateSyntaxError as error:
        raise Refused(
            f"the chat template does not parse: line {error.lineno}: {shortened(str(error.message))}"
        ) from None
    except RecursionError:
        raise Refused("the chat template nests too deeply") from None
    except (ValueError, OverflowError, UnicodeError) as error:
        raise Refused(f"the chat template does not parse: {shortened(str(error))}") from None
    return tree


def _walk(tree: nodes.Node) -> list[nodes.Node]:
    found, pending = [], [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        pending.extend(node.iter_child_nodes())
    return found


def _check(node: nodes.Node) -> None:
    what = type(node).__name__
    if type(node) not in _KNOWN:
        raise Refused(f"the chat template uses {what} in line {node.lineno}, which is unsupported")
    if isinstance(node, nodes.For) and node.recursive:
        raise Refused(f"the chat template has a recursive loop in line {node.lineno}")
    if isinstance(node, nodes.Call | nodes.Filter | nodes.Test) and (node.dyn_args or node.dyn_kwargs):
        raise Refused(f"the chat template unpacks arguments in line {node.lineno}")
    if isinstance(node, nodes.AssignBlock) and node.filter is not None:
        raise Refused(f"the chat template filters a set block in line {node.lineno}")
    if isinstance(node, nodes.Const) and not isinstance(node.value, str | int | float | bool | None):
        raise Refused(f"the chat template has a constant of an unknown kind in line {node.lineno}")
    if isinstance(node, nodes.Const) and isinstance(node.value, int) and abs(node.value) >= 2**63:
        raise Refused(f"the chat template has a number past 64 bits in line {node.lineno}")
