"""The syntax of expressions: Python's, not too large for what goes down recursively."""

from __future__ import annotations

import ast
import warnings

from orchestrator.catalog.expressions.values import ExpressionError

_MAX_TEXT = 4000  # characters
_MAX_DEPTH = 100


def tree_of(text: str) -> ast.expr:
    """The syntax of an expression, not too large for what goes down recursively."""
    if len(text) > _MAX_TEXT:
        raise ExpressionError(f"it has more than {_MAX_TEXT} characters")
    try:
        with warnings.catch_warnings():  # of Python, about odd ways to write numbers
            warnings.simplefilter("error")
            tree = ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError("it is not an expression") from error
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise ExpressionError(f"it is nested more than {_MAX_DEPTH} levels deep")
    return tree


def shown(node: ast.AST) -> str:
    """A part of an expression as messages show it."""
    text = ast.unparse(node)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


_SHOWN_CHARACTERS = 60
