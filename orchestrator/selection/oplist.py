"""Operator lists of the command line: names, and a dictionary of dtypes.

Every reader gives a `Selection` that `union` adds to others.

Source: ExecuTorch `codegen/tools/gen_oplist.py` and `gen_all_oplist.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, TypeGuard

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.selection.op_info import Origin, SelectedOperator, Selection

DEFAULT: Final = "default"
"""Stands for a kernel key in a list: every dtype and dim order."""

# gen_oplist spells these two in its own way; everybody else as our table does.
_SPELLINGS: Final = {"QUInt4X2": ScalarType.QUInt4x2, "QUInt2X4": ScalarType.QUInt2x4}
_OPERATOR_HINT: Final = "write it with its overload, such as aten::add.out"


def read_names(text: str, *, source: str) -> Selection:
    """Operators named one after the other, each with every dtype.

    Args:
        text: Names between commas or white space; `aten::` may be left out.
        source: Who asks, for messages and as origin.

    Raises:
        UsageError: Every text that is no operator name.
    """
    problems: list[Diagnostic] = []
    names = [n for n in re.split(r"[,\s]+", text) if n]
    operators = [
        _operator(name, [DEFAULT], source)
        for text in names
        if (name := _name(text, source, problems)) is not None
    ]
    _raise(problems)
    return Selection(operators=tuple(operators))


def read_dictionary(text: str, *, source: str) -> Selection:
    """Operators with dtypes or kernel keys, as JSON.

    Args:
        text: `{"aten::add.out": ["Float", "v1/3;0,1|3;0,1|3;0,1|3;0,1"]}`. A dtype
            stands for the kernel key `v1/<code>;`; an empty list for every dtype.
        source: Who asks, for messages and as origin.

    Raises:
        UsageError: Everything that is wrong with it.
    """
    problems: list[Diagnostic] = []
    operators = []
    for operator, items in _json_pairs(text, source):
        name = _name(operator, source, problems)
        if not _is_texts(items):
            problems.append(
                Diagnostic.of(
                    "bad-ops-dict",
                    f"{source}: {operator} has no list of strings",
                    found=_shown(items),
                    hint='write a list such as ["Float", "Int"]; [] is every dtype',
                )
            )
            continue
        keys: list[KernelKey | str] = [] if items else [DEFAULT]
        for item in items:
            key = _dtype_or_key(item)
            if key is None:
                problems.append(_bad_dtype(item, f"{source}: {operator}"))
            else:
                keys.append(key)
        if name is not None:
            operators.append(_operator(name, keys, source))
    _raise(problems)
    return Selection(operators=tuple(operators))


def _operator(
    name: OperatorName, keys: Iterable[KernelKey | str], *sources: str
) -> SelectedOperator:
    keys = list(keys)
    return SelectedOperator(
        name=name,
        keys=tuple(sorted({key for key in keys if isinstance(key, KernelKey)})),
        every_dtype=DEFAULT in keys,
        origins=tuple(Origin(source) for source in sorted(set(sources))),
    )


def _name(text: str, source: str, problems: list[Diagnostic]) -> OperatorName | None:
    try:
        return OperatorName.parse(text)
    except ValueError as error:
        problems.append(
            Diagnostic(code="bad-operator", message=f"{source}: {error}", hint=_OPERATOR_HINT)
        )
        return None


def _dtype_or_key(text: str) -> KernelKey | None:
    text = text.strip()
    dtype = _SPELLINGS.get(text) or ScalarType.__members__.get(text)
    if dtype is not None:
        # Without a dim order, which is how a 0-d tensor is written as well.
        return KernelKey((TensorMeta(dtype, ()),))
    try:
        return KernelKey.parse(text)
    except ValueError:
        return None


def _bad_dtype(text: str, who: str) -> Diagnostic:
    return Diagnostic.of(
        "bad-dtype",
        f'{who} has "{text}", neither a dtype nor a kernel key',
        expected="a dtype such as Float, or a key such as v1/6;0,1|6;0,1",
        hint=did_you_mean(text, ScalarType.__members__)
        or "write Float, Half, Char, Int, Long, Bool or another name of ScalarType",
    )


def _json_pairs(text: str, source: str) -> list[tuple[str, object]]:
    """Names and values of a JSON object; a name that occurs twice stays twice."""
    try:
        found = json.loads(text, object_pairs_hook=_Pairs)
        problem = f"it is {type(found).__name__}"
    except (ValueError, RecursionError) as error:
        found, problem = None, str(error)
    if isinstance(found, _Pairs):
        return list(found)
    raise UsageError.of(
        "bad-ops-dict",
        f"{source} is not a JSON object",
        found=problem,
        hint='write {"aten::add.out": ["Float"]}, in quotes for the shell',
    )


class _Pairs(list[tuple[str, object]]):
    """A JSON object, not to be taken for a JSON array."""


def _shown(value: object) -> str:
    return "an object" if isinstance(value, _Pairs) else json.dumps(value)


def _is_texts(items: object) -> TypeGuard[list[str]]:
    return (
        isinstance(items, list)
        and not isinstance(items, _Pairs)
        and all(isinstance(item, str) for item in items)
    )


def _raise(problems: list[Diagnostic]) -> None:
    if problems:
        raise UsageError(problems)
