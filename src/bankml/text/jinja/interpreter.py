"""Evaluates a template's syntax tree with variables to text."""

from collections.abc import Callable, Mapping, Sequence

from jinja2 import nodes

from bankml.text.jinja.arguments import Handler, argument, expect
from bankml.text.jinja.budget import RenderBudget, TemplateError, joined
from bankml.text.jinja.builtins import handlers_of
from bankml.text.jinja.functions import functions, loop_variable
from bankml.text.jinja.general import slice_of
from bankml.text.jinja.operators import number, operate, relate
from bankml.text.jinja.tests import TESTS, TWO_SIDED
from bankml.text.jinja.usage import ValueUsage
from bankml.text.jinja.values import (
    Function,
    Keyword,
    Scope,
    Undefined,
    Value,
    as_text,
    fitting,
    is_array,
    is_int,
    key_of,
    printed,
    truth,
    type_name,
)

_FILTER_NAMES = {"count": "length", "d": "default", "e": "escape", "trim": "strip"}
_TEXT_FILTERS = {"capitalize", "lower", "replace", "strip", "title", "upper", "wordcount"}
_OPERATORS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}


LONGEST_NAME = 64
"""Bytes; no filter or method has a longer name."""


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Interpreter:
    """One rendering. If `usage` is given, it records how the template uses its values."""

    def __init__(self, budget: RenderBudget, now: float, usage: ValueUsage | None = None) -> None:
        self.budget = budget
        self._usage = usage
        self._functions = functions(budget, now)

    def render(self, template: nodes.Template, variables: Mapping[str, Value]) -> bytes:
        """Raises TemplateError if the template fails or exceeds its budget."""
        try:
            return self._body(template.body, dict(variables))
        except RecursionError:
            raise TemplateError("the template recurses too deeply") from None
        except (_Break, _Continue):
            raise TemplateError("break or continue outside a loop") from None

    # Statements: each returns the text it prints. What a statement printed before a break inside it is lost, as in
    # llama.cpp.

    def _body(self, statements: Sequence[nodes.Node], scope: Scope) -> bytes:
        return joined([self._statement(statement, scope) for statement in statements], self.budget)

    def _statement(self, node: nodes.Node, scope: Scope) -> bytes:
        self.budget.step()
        if isinstance(node, nodes.Output):
            return joined([self._output(part, scope) for part in node.nodes], self.budget)
        if isinstance(node, nodes.If):
            return self._if(node, scope)
        if isinstance(node, nodes.For):
            return self._for(node, scope)
        if isinstance(node, nodes.Assign):
            self._assign(node.target, self._value(node.node, scope), scope)
        elif isinstance(node, nodes.AssignBlock):
            self._assign(node.target, self._body(node.body, scope), scope)
        elif isinstance(node, nodes.Macro):
            scope[node.name] = Function(node.name, self._macro(node))
        elif isinstance(node, nodes.CallBlock):
            return printed(self._call_block(node, scope), self.budget)
        elif isinstance(node, nodes.FilterBlock):
            return printed(self._filtered(node.filter, self._body(node.body, scope), scope), self.budget)
        elif isinstance(node, nodes.Break):
            raise _Break
        elif isinstance(node, nodes.Continue):
            raise _Continue
        return b""

    def _output(self, node: nodes.Node, scope: Scope) -> bytes:
        self.budget.step()
        if isinstance(node, nodes.TemplateData):
            text = node.data.encode("utf-8", "replace")
            self.budget.text(len(text))
            return text
        return printed(self._value(node, scope), self.budget)

    def _if(self, node: nodes.If, scope: Scope) -> bytes:
        if truth(self._value(node.test, scope)):
            return self._body(node.body, scope)
        for branch in node.elif_:
            self.budget.step()
            if truth(self._value(branch.test, scope)):
                return self._body(branch.body, scope)
        return self._body(node.else_, scope)

    def _for(self, node: nodes.For, outer: Scope) -> bytes:
        scope = self._copy(outer)
        iterable = self._value(node.iter, scope)
        if self._usage:
            self._usage.operation(iterable, "array_access")
        if isinstance(iterable, Undefined):
            iterable = []
        if not is_array(iterable) and not isinstance(iterable, dict):
            raise TemplateError(f"a loop needs an array or an object, not {type_name(iterable)}")
        pairs = isinstance(iterable, dict) and isinstance(node.target, nodes.Tuple)
        self.budget.step(len(iterable))
        items = list(iterable.items() if pairs else iterable)
        if node.test is not None:
            items = [item for item in items if self._passes(node, item, scope)]
        out: list[bytes] = []
        finished_a_turn = False
        for i, item in enumerate(items):
            self.budget.step(2)
            scope["loop"] = loop_variable(items, i)
            self._bind(node.target, item, scope)
            try:
                for statement in node.body:
                    out.append(self._statement(statement, scope))
            except _Continue:
                continue
            except _Break:
                break
            finished_a_turn = True
        if not finished_a_turn:
            out.append(self._body(node.else_, outer))
        return joined(out, self.budget)

    def _passes(self, node: nodes.For, item: Value, scope: Scope) -> bool:
        own = self._copy(scope)
        self._bind(node.target, item, own)
        return node.test is None or truth(self._value(node.test, own))

    def _bind(self, target: nodes.Node, item: Value, scope: Scope) -> None:
        if isinstance(target, nodes.Name):
            scope[target.name] = item
            return
        names = target.items if isinstance(target, nodes.Tuple) else []
        if not is_array(item):
            raise TemplateError(f"Cannot unpack non-iterable type: {type_name(item)}")
        if len(names) != len(item):
            raise TemplateError(f"Too {'few' if len(names) > len(item) else 'many'} items to unpack")
        for name, part in zip(names, item, strict=True):
            if not isinstance(name, nodes.Name):
                raise TemplateError("Cannot unpack to something that is no name")
            scope[name.name] = part

    def _assign(self, target: nodes.Node, value: Value, scope: Scope) -> None:
        if isinstance(target, nodes.NSRef):
            holder = self._named(target.name, scope)
            expect(holder, dict, "an object to set a member of")[target.attr.encode()] = value
        else:
            self._bind(target, value, scope)

    def _copy(self, scope: Scope) -> Scope:
        self.budget.step(1 + len(scope) // 8)
        return dict(scope)

    # Macros see the names of their caller: a call is given the caller's scope.

    def _macro(self, node: nodes.Macro) -> Callable[[list[Value], Scope], Value]:
        def call(arguments: list[Value], caller: Scope) -> Value:
            self.budget.step(4)
            scope = self._copy(caller)
            self._parameters(node, arguments, scope, caller)
            return self._body(node.body, scope)

        return call

    def _call_block(self, node: nodes.CallBlock, scope: Scope) -> Value:
        where = self._copy(scope)

        def caller(arguments: list[Value], calling: Scope) -> Value:
            self.budget.step(4)
            own = self._copy(where)
            self._parameters(node, arguments, own, calling)
            return self._body(node.body, own)

        callee = self._value(node.call.node, scope)
        arguments = self._arguments(node.call, scope)
        inner = self._copy(scope)
        inner["caller"] = Function("caller", caller)
        return self._invoke(callee, arguments, inner)

    def _parameters(
        self, node: nodes.Macro | nodes.CallBlock, arguments: list[Value], scope: Scope, caller: Scope
    ) -> None:
        first_default = len(node.args) - len(node.defaults)
        for i, parameter in enumerate(node.args):
            if i < len(arguments):
                scope[parameter.name] = argument(arguments, parameter.name, i)
            elif i >= first_default:
                scope[parameter.name] = self._value(node.defaults[i - first_default], caller)
            else:
                raise TemplateError("Not enough arguments provided to a macro")

    # Expressions

    def _value(self, node: nodes.Node, scope: Scope) -> Value:
        self.budget.step()
        return getattr(self, "_" + type(node).__name__.lower())(node, scope)

    def _name(self, node: nodes.Name, scope: Scope) -> Value:
        return self._named(node.name, scope)

    def _named(self, name: str, scope: Scope) -> Value:
        value = scope.get(name)
        if name in scope and not isinstance(value, Undefined):
            if self._usage:
                self._usage.use(value)
            return value
        function = self._functions.get(name)
        return function or Undefined(name)

    def _const(self, node: nodes.Const, scope: Scope) -> Value:
        return node.value.encode("utf-8", "replace") if isinstance(node.value, str) else node.value

    def _list(self, node: nodes.List, scope: Scope) -> Value:
        return [self._value(item, scope) for item in node.items]

    def _tuple(self, node: nodes.Tuple, scope: Scope) -> Value:
        return tuple(self._value(item, scope) for item in node.items)

    def _dict(self, node: nodes.Dict, scope: Scope) -> Value:
        pairs = [(self._value(pair.key, scope), self._value(pair.value, scope)) for pair in node.items]
        return {key_of(key, self.budget): value for key, value in pairs}

    def _condexpr(self, node: nodes.CondExpr, scope: Scope) -> Value:
        if truth(self._value(node.test, scope)):
            return self._value(node.expr1, scope)
        return Undefined() if node.expr2 is None else self._value(node.expr2, scope)

    def _and(self, node: nodes.And, scope: Scope) -> Value:
        left = self._value(node.left, scope)
        return self._value(node.right, scope) if truth(left) else left

    def _or(self, node: nodes.Or, scope: Scope) -> Value:
        left = self._value(node.left, scope)
        return left if truth(left) else self._value(node.right, scope)

    def _not(self, node: nodes.Not, scope: Scope) -> Value:
        return not truth(self._value(node.node, scope))

    def _neg(self, node: nodes.Neg, scope: Scope) -> Value:
        return fitting(-number(self._value(node.node, scope)))

    def _pos(self, node: nodes.Pos, scope: Scope) -> Value:
        return number(self._value(node.node, scope))

    def _operation(self, node: nodes.BinExpr, scope: Scope) -> Value:
        left, right = self._value(node.left, scope), self._value(node.right, scope)
        return operate(_OPERATORS[type(node).__name__], left, right, self.budget)

    _add = _sub = _mul = _div = _mod = _operation

    def _concat(self, node: nodes.Concat, scope: Scope) -> Value:
        value = self._value(node.nodes[0], scope)
        for part in node.nodes[1:]:
            value = operate("~", value, self._value(part, scope), self.budget)
        return value

    def _compare(self, node: nodes.Compare, scope: Scope) -> Value:
        value = self._value(node.expr, scope)
        for operand in node.ops:
            value = relate(operand.op, value, self._value(operand.expr, scope), self.budget)
        return value

    def _getattr(self, node: nodes.Getattr, scope: Scope) -> Value:
        holder = self._value(node.node, scope)
        method = self._method(node.attr, holder)
        return self._item(holder, node.attr.encode()) if method is None else method

    def _getitem(self, node: nodes.Getitem, scope: Scope) -> Value:
        holder = self._value(node.node, scope)
        if not isinstance(node.arg, nodes.Slice):
            return self._item(holder, self._value(node.arg, scope))
        size = len(holder) if isinstance(holder, bytes | list | tuple) else 0
        step = 1 if node.arg.step is None else self._value(node.arg.step, scope)
        back = is_int(step) and step < 0
        start = (size - 1 if back else 0) if node.arg.start is None else self._value(node.arg.start, scope)
        stop = (-1 if back else size) if node.arg.stop is None else self._value(node.arg.stop, scope)
        if self._usage:
            self._usage.operation(holder, "slice")
        return slice_of(self.budget, holder, start, stop, step)

    def _item(self, holder: Value, key: Value) -> Value:
        value = Undefined("object_property") if isinstance(key, Undefined) else self._found(holder, key)
        if self._usage:
            self._usage.use(value)
            self._usage.operation(holder, "array_access" if is_int(key) else "object_access")
        return value

    def _found(self, holder: Value, key: Value) -> Value:
        missing = Undefined("object_property")
        key_of(key, self.budget)
        if isinstance(holder, Undefined):
            return missing
        if isinstance(holder, dict):
            value = holder.get(key, missing)
            if isinstance(value, Undefined) and isinstance(key, bytes):
                method = self._method_by(key, holder)
                return value if method is None else method
            return value
        if isinstance(holder, bytes | list | tuple) and is_int(key):
            at = key + len(holder) if key < 0 and not isinstance(holder, bytes) else key
            if not 0 <= at < len(holder):
                return missing
            return holder[at : at + 1] if isinstance(holder, bytes) else holder[at]
        if not isinstance(key, bytes):
            raise TemplateError(f"Cannot access a property of {type_name(holder)} by {type_name(key)}")
        method = self._method_by(key, holder)
        return missing if method is None else method

    def _method_by(self, key: bytes, holder: Value) -> Function | None:
        return self._method(key[:LONGEST_NAME].decode("utf-8", "replace"), holder)

    def _method(self, name: str, holder: Value) -> Function | None:
        """The filter or method `name` bound to `holder`, if its type has it."""
        if self._usage:
            self._usage.operation(holder, name)
        handler = handlers_of(holder).get(name)
        if handler is None:
            return None
        return Function(name, lambda a, _scope: self._handled(name, handler, [holder, *a]))

    def _handled(self, name: str, handler: Handler, arguments: list[Value]) -> Value:
        if self._usage and name in ("tojson", "string"):
            self._usage.use_all(arguments[0])
        return handler(self.budget, arguments)

    def _filter(self, node: nodes.Filter, scope: Scope) -> Value:
        value = Undefined() if node.node is None else self._value(node.node, scope)
        return self._filtered(node, value, scope)

    def _filtered(self, node: nodes.Filter, value: Value, scope: Scope) -> Value:
        name = _FILTER_NAMES.get(node.name, node.name)
        if name in _TEXT_FILTERS and not (node.args or node.kwargs) and not isinstance(value, Undefined):
            value = as_text(value, self.budget)
        arguments = self._arguments(node, scope)
        method = self._method(name, value)
        if method is None:
            raise TemplateError(f"Unknown (built-in) filter '{name}' for type {type_name(value)}")
        return method.call(arguments, scope)

    def _test(self, node: nodes.Test, scope: Scope) -> Value:
        value = self._value(node.node, scope)
        test = TESTS.get(node.name)
        if test is None:
            raise TemplateError(f"Unknown test '{node.name}'")
        arguments = [value, *self._arguments(node, scope)]
        if node.name in TWO_SIDED and len(arguments) < 2:
            raise TemplateError(f"the test '{node.name}' needs something to compare with")
        if self._usage:
            self._usage.operation(value, "test_is_" + node.name)
        return test(self.budget, arguments)

    def _call(self, node: nodes.Call, scope: Scope) -> Value:
        arguments = self._arguments(node, scope)
        return self._invoke(self._value(node.node, scope), arguments, scope)

    def _invoke(self, callee: Value, arguments: list[Value], scope: Scope) -> Value:
        if not isinstance(callee, Function):
            raise TemplateError(f"Callee is not a function: got {type_name(callee)}")
        return callee.call(arguments, scope)

    def _arguments(self, node: nodes.Call | nodes.Filter | nodes.Test, scope: Scope) -> list[Value]:
        arguments = [self._value(given, scope) for given in node.args]
        return arguments + [Keyword(str(given.key), self._value(given.value, scope)) for given in node.kwargs]
