"""The safe expression language of conditions and templates.

```
condition:  {{result.failed_rows}} == 0 and {{answer.choice}} in ["approve", "later"]
template:   Please look at {{file}}: {{result.failed_rows}} rows failed
```

Braces name a variable, by a path of names, `.name` and `[0]`. Its value is looked up when the expression is judged and
never pasted into it as text, so a value that looks like code stays a value. In a condition the braces may be left out
where the name is a plain word. A template that is nothing but one pair of braces gives the value itself, with its type.

The language: numbers, texts, `true false null`, lists; `+ - * / // %`; `== != < <= > >= in not in`; `and or not`;
`a if b else c`; `[0]` and `.name` on values; the functions of `FUNCTIONS`. No names but variables, no attributes of
Python objects, no methods, no comprehensions, no power. Text joins only text and compares only with text.

**Bounded.** An expression has at most 1,000 characters and 200 parts; there is no loop; numbers have at most 1,024
bits, texts and lists that an operator makes at most 100,000 elements. So a judgement takes time in proportion to the
variables, which are bounded where they are stored.

The grammar is Python's, walked node by node by simpleeval from a list of what is allowed; nothing is compiled or
evaluated by Python. Chosen over CEL: cel-python brings six packages and refuses `1000.5 > 1000` as mixing two types of
number; cel-expr-python is young and binary; rule-engine reads attributes of objects unless told not to. simpleeval is
one file without dependencies, kept for thirteen years; its known holes led through attributes and functions, of which
nothing is left here. *Not guaranteed*: exact decimals; numbers are those of JSON.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import simpleeval

from importer.errors import ExpressionError

Json: TypeAlias = Any  # a value of JSON: None, bool, int, float, str, list, dict

#: The longest expression, in characters, and the most parts it may have.
LONGEST = 1000
MOST_PARTS = 200

#: The most bits of a whole number, and the most letters or elements that an operator may make.
MOST_BITS = 1024
MOST_ELEMENTS = 100_000

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_STEP = re.compile(r"""\.([A-Za-z_]\w*)|\[(-?\d{1,9})\]|\[(?:"([^"\]]*)"|'([^'\]]*)')\]""")
_NAME = re.compile(r"[A-Za-z_]\w*")
_PIECE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\{\{(.*?)\}\}""", re.DOTALL)
_SLOT = "__brace_{}"
_WORDS: Mapping[str, Json] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


def judge(expression: str, variables: Mapping[str, Json]) -> bool:
    """Tell whether a condition holds.

    Raises:
        ExpressionError: it cannot be read, a variable is missing (`variable` names it), or it is neither true nor
            false.

        >>> judge("{{stars}} > 1000", {"stars": 1200})
        True
    """
    value = evaluate(expression, variables)
    if not isinstance(value, bool):
        raise ExpressionError(expression, f"it gives {_shown(value)}, and a condition gives true or false")
    return value


def evaluate(expression: str, variables: Mapping[str, Json]) -> Json:
    """Work an expression out. Raises: ExpressionError.

    >>> evaluate("len(rows) * 2", {"rows": [1, 2]})
    4
    """
    tree, paths = _parsed(expression)
    try:
        return _Evaluator(expression, paths, variables).eval(expression, tree)
    except ExpressionError:
        raise
    except ZeroDivisionError as error:
        raise ExpressionError(expression, "it divides by zero") from error
    except (simpleeval.InvalidExpression, TypeError, ValueError, KeyError, IndexError, ArithmeticError) as error:
        raise ExpressionError(expression, _reason(error)) from error


def check(expression: str) -> None:
    """Refuse an expression that cannot be read or uses what the language has not. Raises: ExpressionError."""
    tree, paths = _parsed(expression)
    for path in paths:
        _steps(expression, path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            check_template(node.value)


def render(template: str, variables: Mapping[str, Json]) -> Json:
    """Fill a template: a text, or the value itself when the template is one pair of braces and nothing else.

    Raises:
        ExpressionError: a variable is missing (`variable` names it), or what stands in braces is no name.

        >>> render("{{n}} rows of {{file.name}}", {"n": 3, "file": {"name": "a.xlsx"}})
        '3 rows of a.xlsx'
        >>> render("{{n}}", {"n": 3})
        3
    """
    whole = _BRACES.fullmatch(template.strip())
    if whole is not None and "{{" not in whole[1]:
        return find(whole[1], variables, within=template)
    parts: list[str] = []
    end = length = 0
    for match in _BRACES.finditer(template):
        parts += [template[end : match.start()], as_text(find(match[1], variables, within=template))]
        end = match.end()
        length += len(parts[-1])
        if length > MOST_ELEMENTS:
            raise ExpressionError(template, f"the text becomes longer than {MOST_ELEMENTS:,} letters")
    return "".join([*parts, template[end:]])


def render_all(value: Json, variables: Mapping[str, Json]) -> Json:
    """Fill every template in a value of JSON, at any depth. Raises: ExpressionError."""
    match value:
        case str():
            return render(value, variables)
        case Mapping():
            return {key: render_all(inner, variables) for key, inner in value.items()}
        case list() | tuple():
            return [render_all(inner, variables) for inner in value]
        case _:
            return value


def check_template(template: str) -> None:
    """Refuse a template with something else than a name in its braces. Raises: ExpressionError."""
    for match in _BRACES.finditer(template):
        _steps(template, match[1])


def find(path: str, variables: Mapping[str, Json], *, within: str = "") -> Json:
    """Look a value up by its path, `result.rows[0].name`.

    Raises:
        ExpressionError: there is no such value; `variable` names how far the path was missing.
    """
    steps = _steps(within or path, path)
    value: Json = variables
    walked = ""
    for step in steps:
        walked = f"{walked}[{step}]" if isinstance(step, int) else f"{walked}.{step}".removeprefix(".")
        value = _inner(value, step, walked, within or path)
    return value


def _inner(value: Json, step: str | int, walked: str, within: str) -> Json:
    if isinstance(step, str) and isinstance(value, Mapping) and step in value:
        return value[step]
    if isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
        return value[step]
    there = f"; there are: {', '.join(map(str, list(value)[:20]))}" if isinstance(value, Mapping) and value else ""
    raise ExpressionError(within, f"there is no variable {walked}{there}", variable=walked)


def _steps(within: str, path: str) -> list[str | int]:
    """Take a path apart: names and positions."""
    text = path.strip()
    first = _NAME.match(text)
    if first is None:
        raise ExpressionError(within, f"braces hold the name of a variable, not {_shown(text)}")
    steps: list[str | int] = [first[0]]
    end = first.end()
    while end < len(text):
        match = _STEP.match(text, end)
        if match is None:
            raise ExpressionError(within, f"braces hold the name of a variable, not {_shown(text)}")
        name, position, double, single = match.groups()
        steps.append(int(position) if position is not None else name or (double if double is not None else single))
        end = match.end()
    return steps


@cache
def _parsed(expression: str) -> tuple[ast.Expr, tuple[str, ...]]:
    """Read an expression: its tree, in which each pair of braces is a slot, and the paths of the slots."""
    if len(expression) > LONGEST:
        raise ExpressionError(expression[:40] + "…", f"it is longer than {LONGEST:,} characters")
    paths: list[str] = []

    def slot(match: re.Match[str]) -> str:
        if match[1] is not None:  # in quotes, braces are filled like those of a template
            return match[1]
        paths.append(match[2])
        return f" {_SLOT.format(len(paths) - 1)} "

    try:
        tree = ast.parse(_PIECE.sub(slot, expression).strip(), mode="exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(expression, "it cannot be read as an expression") from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        raise ExpressionError(expression, "it is not one expression")
    nodes = list(ast.walk(tree.body[0]))
    if len(nodes) > 2 * MOST_PARTS:
        raise ExpressionError(expression, f"it has more than {MOST_PARTS} parts")
    for node in nodes:
        _refuse_foreign(expression, node, len(paths))
    return tree.body[0], tuple(paths)


def _refuse_foreign(expression: str, node: ast.AST, slots: int) -> None:
    """Refuse what is not on the list of the language."""
    if not isinstance(node, _ALLOWED):
        raise ExpressionError(expression, f"the language has no {type(node).__name__.lower()}")
    match node:
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
            pass
        case ast.Call():
            raise ExpressionError(expression, f"there are only these functions: {', '.join(sorted(FUNCTIONS))}")
        case ast.Attribute(attr=name) if name.startswith("_"):
            raise ExpressionError(expression, f"a name after a dot does not begin with an underscore: {name}")
        case ast.Name(id=name) if name.startswith("__") and name not in {_SLOT.format(n) for n in range(slots)}:
            raise ExpressionError(expression, f"a name does not begin with two underscores: {name}")
        case ast.Constant(value=value) if not isinstance(value, int | float | str | None):
            raise ExpressionError(expression, "the language has numbers, texts, true, false and null")
        case _:
            pass


class _Evaluator(simpleeval.SimpleEval):  # type: ignore[misc]  # it comes without types
    """Walks the tree; looks variables up where they are named."""

    def __init__(self, expression: str, paths: Sequence[str], variables: Mapping[str, Json]) -> None:
        super().__init__(operators=_OPERATORS, functions=dict(FUNCTIONS), names={})
        self._expression = expression
        self._paths = {_SLOT.format(number): path for number, path in enumerate(paths)}
        self._variables = variables
        self.nodes = {
            ast.Expr: self._eval_expr,
            ast.Name: self._look_up,
            ast.Constant: self._constant,
            ast.UnaryOp: self._eval_unaryop,
            ast.BinOp: self._eval_binop,
            ast.BoolOp: self._eval_boolop,
            ast.Compare: self._eval_compare,
            ast.IfExp: self._eval_ifexp,
            ast.Call: self._eval_call,
            ast.Subscript: self._subscript,
            ast.Attribute: self._member,
            ast.List: self._list,
        }

    def _check_disallowed_items(self, item: object) -> None:
        """Only values of JSON exist here; the tree was checked against the list before."""

    def _look_up(self, node: ast.Name) -> Json:
        if node.id in self._paths:
            return find(self._paths[node.id], self._variables, within=self._expression)
        if node.id in self._variables:
            return self._variables[node.id]
        if node.id in _WORDS:
            return _WORDS[node.id]
        return find(node.id, self._variables, within=self._expression)

    def _constant(self, node: ast.Constant) -> Json:
        return render(node.value, self._variables) if isinstance(node.value, str) else node.value

    def _subscript(self, node: ast.Subscript) -> Json:
        container, key = self._eval(node.value), self._eval(node.slice)
        if isinstance(key, bool) or not isinstance(key, int | str):
            raise ExpressionError(self._expression, f"{_shown(key)} is neither a name nor a position")
        return _inner(container, key, f"{ast.unparse(node.value)}[{key}]", self._expression)

    def _member(self, node: ast.Attribute) -> Json:
        return _inner(self._eval(node.value), node.attr, f"{ast.unparse(node.value)}.{node.attr}", self._expression)

    def _list(self, node: ast.List) -> Json:
        return [self._eval(element) for element in node.elts]


def _numbers(name: str, work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operate(left: Json, right: Json) -> Json:
        if not _is_number(left) or not _is_number(right):
            raise TypeError(f"{name} takes two numbers, not {_shown(left)} and {_shown(right)}")
        return _bounded(work(_bounded(left), _bounded(right)))

    return operate


def _add(left: Json, right: Json) -> Json:
    if isinstance(left, str) and isinstance(right, str):
        return _bounded(left + right)
    if isinstance(left, list) and isinstance(right, list):
        return _bounded(left + right)
    return _numbers("+", operator.add)(left, right)


def _order(name: str, work: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(left: Json, right: Json) -> bool:
        if _is_number(left) and _is_number(right):
            return work(left, right)
        if isinstance(left, str) and isinstance(right, str):
            return work(left, right)
        raise TypeError(f"{name} compares two numbers or two texts, not {_shown(left)} and {_shown(right)}")

    return compare


def _same(left: Json, right: Json) -> bool:
    """Equal as JSON is: true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _within(left: Json, right: Json) -> bool:
    match right:
        case str() if isinstance(left, str):
            return left in right
        case list():
            return any(_same(left, element) for element in right)
        case Mapping():
            return isinstance(left, str) and left in right
        case _:
            raise TypeError(f"in looks into a list, a text or a mapping, not into {_shown(right)}")


def _opposite(value: Json) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"not takes true or false, not {_shown(value)}")
    return not value


def _signed(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def operate(value: Json) -> Json:
        if not _is_number(value):
            raise TypeError(f"a sign stands before a number, not before {_shown(value)}")
        return work(value)

    return operate


def _length(value: Json) -> int:
    if isinstance(value, str | list | Mapping):
        return len(value)
    raise TypeError(f"len takes a text, a list or a mapping, not {_shown(value)}")


def _text_only(work: Callable[..., Any]) -> Callable[..., Any]:
    def operate(*values: Json) -> Json:
        for value in values:
            if not isinstance(value, str):
                raise TypeError(f"{_shown(value)} is no text")
        return work(*values)

    return operate


def _extreme(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def operate(*values: Json) -> Json:
        of: Sequence[Json] = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        if not of or not all(_is_number(value) for value in of):
            raise TypeError(f"{name} takes numbers")
        return work(of)

    return operate


def _rounded(value: Json, digits: Json = 0) -> Json:
    if not _is_number(value) or isinstance(digits, bool) or not isinstance(digits, int) or abs(digits) > 15:
        raise TypeError("round takes a number, and a count of digits up to 15")
    return round(value, digits) if digits else round(value)


def _to_number(value: Json) -> Json:
    if _is_number(value):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,100}\s*", value):
        return int(value)
    if isinstance(value, str) and len(value) <= 100:
        try:
            return _bounded(float(value))
        except ValueError:
            pass
    raise TypeError(f"{_shown(value)} is no number")


def as_text(value: Json) -> str:
    """Return a value as a template writes it into a text: texts as they are, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


#: The functions of the language.
FUNCTIONS: Mapping[str, Callable[..., Json]] = {
    "abs": _signed(abs),
    "ends_with": _text_only(str.endswith),
    "len": _length,
    "lower": _text_only(str.lower),
    "max": _extreme("max", max),
    "min": _extreme("min", min),
    "number": _to_number,
    "round": _rounded,
    "starts_with": _text_only(str.startswith),
    "text": as_text,
    "trim": _text_only(str.strip),
    "upper": _text_only(str.upper),
}

_OPERATORS: Mapping[type[ast.AST], Callable[..., Json]] = {
    ast.Add: _add,
    ast.Sub: _numbers("-", operator.sub),
    ast.Mult: _numbers("*", operator.mul),
    ast.Div: _numbers("/", operator.truediv),
    ast.FloorDiv: _numbers("//", operator.floordiv),
    ast.Mod: _numbers("%", operator.mod),
    ast.Eq: _same,
    ast.NotEq: lambda left, right: not _same(left, right),
    ast.Lt: _order("<", operator.lt),
    ast.LtE: _order("<=", operator.le),
    ast.Gt: _order(">", operator.gt),
    ast.GtE: _order(">=", operator.ge),
    ast.In: _within,
    ast.NotIn: lambda left, right: not _within(left, right),
    ast.Not: _opposite,
    ast.USub: _signed(operator.neg),
    ast.UAdd: _signed(operator.pos),
}

_ALLOWED = (
    ast.Expr, ast.Name, ast.Load, ast.Constant, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.And, ast.Or, ast.Compare,
    ast.IfExp, ast.Call, ast.Subscript, ast.Attribute, ast.List, *_OPERATORS,
)  # fmt: skip


def _bounded(value: Json) -> Json:
    match value:
        case bool():
            return value
        case int() if value.bit_length() > MOST_BITS:
            raise ValueError(f"a number becomes larger than {MOST_BITS} bits")
        case float() if not math.isfinite(value):
            raise ValueError("a number becomes larger than can be held")
        case str() | list() if len(value) > MOST_ELEMENTS:
            raise ValueError(f"a text or list becomes longer than {MOST_ELEMENTS:,}")
        case _:
            return value


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Json) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _reason(error: Exception) -> str:
    return str(getattr(error, "message", None) or error) or type(error).__name__
