"""Which operators a pass may change.

A pass that replays a graph sees every node in a method of its own: `call_operator`,
`call_getitem`, `placeholder`. A node that this method would pass on unchanged need not
be shown to it. This is known for a pass

- that does not override the method;
- whose method begins with a test whether the operator is in a collection, in any
  spelling (`target_ops`, `targeted_ops`, `_supported_ops`, a name of the module), and
  passes on all others: this is read from its source;
- that `orchestrator.lowering.registry` describes.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from orchestrator.lowering.bases import BASES
from orchestrator.lowering.registry import BY_NODE, BY_OPERATOR, Question

if TYPE_CHECKING:
    Guard = Callable[[Any], Any]

_NOT_UPDATED: Final = frozenset({"updated", "False"})
"""Marks that Arm's passes leave on nodes that they changed; others do not set them."""
_HANDED_ON: Final = ("op", "args", "kwargs", "meta")
"""The parameters of `call_operator`."""


class Targets:
    """What one pass may change, found once for each operator.

    Args:
        own: The pass; only one that is replaying.
        guards: Of methods that were read before, for all passes.
    """

    def __init__(self, own: Any, guards: dict[Any, Guard | None]) -> None:
        self._own = own
        self._guards = guards
        self._by_node: list[Question] = []
        self._is_unchanged: dict[int, bool] = {}
        self._operators = self._questions()
        self.placeholders = self.inherits(own, "placeholder")
        """Whether placeholders are passed on unchanged."""
        self.items = self.inherits(own, "call_getitem")
        """Whether items of tuples are passed on unchanged."""

    def leaves(self, node: Any) -> bool:
        """Whether the pass passes on a call of an operator unchanged."""
        target = node.target
        # By id: operators live as long as the process.
        unchanged = self._is_unchanged.get(id(target))
        if unchanged is None:
            unchanged = self._is_unchanged[id(target)] = self._operators is not None and not any(
                may_change(self._own, target) for may_change in self._operators
            )
        if unchanged and self._by_node:
            return not any(f(self._own, node) for f in self._by_node)
        return unchanged

    @staticmethod
    def inherits(own: Any, method: str) -> bool:
        """Whether a pass has a method of the base."""
        return method not in vars(own) and getattr(type(own), method, None) in {
            vars(base).get(method) for base in BASES
        }

    def _questions(self) -> list[Question] | None:
        """The test for an operator; None if the pass is not in the registry."""
        found: list[Question] = []
        # A method that was set on the instance has no source that says what it changes.
        if "call_operator" in vars(self._own):
            return None
        for owner in type(self._own).__mro__:
            method = vars(owner).get("call_operator")
            if owner in BASES:
                return found
            if method is None:
                continue
            name = f"{owner.__module__}.{owner.__qualname__}"
            if name in BY_NODE:
                self._by_node.append(BY_NODE[name])
            elif name in BY_OPERATOR:
                found.append(BY_OPERATOR[name])
            else:
                if method not in self._guards:
                    self._guards[method] = guard_of(method)
                guard = self._guards[method]
                if guard is None:
                    return None
                found.append(_among(guard))
        return None


def _among(guard: Guard) -> Question:
    return lambda own, op: op in guard(own)


def guard_of(method: Callable[..., Any]) -> Guard | None:
    """Find the operators of a `call_operator` that passes on all others.

    Args:
        method: Its source is read.

    Returns:
        A function from a pass to its operators; None without such a test.
    """
    try:
        # From source, as a pass has no other statement of what it changes; everything
        # that does not have exactly this form is replayed.
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return None
    match tree.body:
        case [ast.FunctionDef(args=ast.arguments(args=words, defaults=d), body=body)]:
            pass
        case _:
            return None
    if [word.arg for word in words][:5] != ["self", *_HANDED_ON]:
        return None
    if any(ast.unparse(value) != "False" for value in d):
        return None
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    match body:
        case [ast.If(test=test, body=[ast.Return(value=ast.Call() as call)]), *_]:
            pass
        case _:
            return None
    match test:
        # `if op not in targets or ...: return super()...`: the first test alone is
        # enough to pass a node on.
        case ast.BoolOp(op=ast.Or(), values=[first, *_]):
            test = first
        case _:
            pass
    return _collection(method, test) if _hands_all_on(call) else None


def _hands_all_on(call: ast.Call) -> bool:
    """Whether a call is `super().call_operator(op, args, kwargs, meta, ...)`."""
    if ast.unparse(call.func) != "super().call_operator":
        return False
    given = tuple(ast.unparse(word) for word in call.args)
    kept = all(
        word.arg == "updated" and ast.unparse(word.value) in _NOT_UPDATED for word in call.keywords
    )
    # `updated` of Arm's passes (arm_pass.py) only notes in metadata that something
    # changed.
    return given[:4] == _HANDED_ON and set(given[4:]) <= _NOT_UPDATED and kept


def _collection(method: Any, test: ast.expr) -> Guard | None:
    """The collection in `op not in self.a` or `op not in A`."""
    names = vars(sys.modules[method.__module__])
    match test:
        case ast.Compare(
            left=ast.Name(id="op"),
            ops=[ast.NotIn()],
            comparators=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
        ):
            # Asked of each instance: some passes fill the collection in __init__.
            return lambda own: getattr(own, name)
        case ast.Compare(
            left=ast.Name(id="op"), ops=[ast.NotIn()], comparators=[ast.Name(id=name)]
        ) if name in names:
            return lambda _: names[name]
        case _:
            return None
