"""Diagnostic codes that the package's source can give, found by reading it."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

from tests.unit.modules import modules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CODE = re.compile("[a-z]+(-[a-z]+)*")


@cache
def codes_in_source() -> frozenset[str]:
    """Every constant that reaches a parameter or variable named `code`.

    Functions that pass a code on have such a parameter too, so it is enough to look
    at all calls of functions that have one.
    """
    trees = modules().values()
    positions: dict[str, set[int]] = {"Diagnostic": set()}
    found: set[str] = set()
    for name, position, default in (c for tree in trees for c in _carriers(tree)):
        places = positions.setdefault(name, set())
        if position is not None:
            places.add(position)
        if default is not None:
            found.update(_constants(default))
    for tree in trees:
        for value in _values(tree, positions):
            found.update(_constants(value))
    # Some parameters of that name are no diagnostic codes: a letter or a sign.
    return frozenset(c for c in found if len(c) > 2 and _CODE.fullmatch(c))


def _constants(node: ast.expr) -> Iterator[str]:
    """Strings that an expression may stand for: `"a" if x else "b"` is both."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _constants(body)
            yield from _constants(orelse)


def _carriers(tree: list[ast.AST]) -> Iterator[tuple[str, int | None, ast.expr | None]]:
    """Functions with a parameter `code`: name, position if it has one, default."""
    owners = {
        child: node.name for node in tree if isinstance(node, ast.ClassDef) for child in node.body
    }
    for node in tree:
        if not isinstance(node, ast.FunctionDef):
            continue
        name = owners.get(node, "") if node.name == "__init__" else node.name
        places = [*node.args.posonlyargs, *node.args.args]
        places = places[1:] if node in owners else places
        for index, argument in enumerate(places):
            if argument.arg == "code":
                default = index - len(places) + len(node.args.defaults)
                yield name, index, node.args.defaults[default] if default >= 0 else None
        for argument, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if argument.arg == "code":
                yield name, None, value


def _values(tree: list[ast.AST], positions: dict[str, set[int]]) -> Iterable[ast.expr]:
    """What is given for a parameter, or to a variable, named `code`."""
    for node in tree:
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                yield from (k.value for k in node.keywords if k.arg == "code")
                places = positions.get(name, ())
                yield from (node.args[p] for p in places if p < len(node.args))
            case ast.Assign(targets=[ast.Name(id="code")], value=value):
                yield value
