"""Operator lists of the command line: names, and a dictionary of dtypes.

Every reader gives a `Selection` that `union` adds to others.

Source: ExecuTorch `codegen/tools/gen_oplist.py` and `gen_all_oplist.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
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


# Text of `selected_operators.yaml`.
#
# Written by hand: the form is fixed, importing PyYAML takes longer than all the rest of the
# stage, and the tests hold the text to what PyYAML writes and reads.
#
# Source: ExecuTorch `codegen/tools/gen_oplist.py`.

# What needs no quotes in YAML 1.1, a part of it: anything else is quoted.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./|;,-]*(?:::?[A-Za-z0-9_.;,/|-]+)*")
_NOT_STRINGS: Final = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
"""Plain words that YAML 1.1 reads as something else than a string."""


def selected_operators_yaml(
    selection: Selection, *, generator: str, notes: Sequence[str] = ()
) -> str:
    """The selection in ExecuTorch's form, in canonical order.

    Operators that are called have the kernel keys of their calls; those asked for
    with every dtype have the key `default`, as in ExecuTorch's tools. One that is
    only listed has no key. `debug_info` names who asked: models by their name in the
    profile, and profile keys.

    Args:
        selection: What to write.
        generator: Names the program and profile in the comment of the first line.
        notes: More lines of comment.
    """
    keys = {
        str(operator.name): kernel_keys
        for operator in selection.operators
        if (kernel_keys := _kernel_keys(operator))
    }
    lines = [
        *(f"# {' '.join(line.split())}" for line in (generator, *notes)),
        "build_features: []",
        "custom_classes: []",
        *_mapping("et_kernel_metadata", keys),
        "include_all_non_op_selectives: false",
        f"include_all_operators: {_boolean(value=selection.every_operator)}",
        "kernel_metadata: {}",
    ]
    operators = sorted(selection.operators, key=lambda o: str(o.name))
    lines.append("operators:" if operators else "operators: {}")
    for operator in operators:
        lines.append(f"  {_scalar(str(operator.name))}:")
        sources = _sources(operator)
        lines.append("    debug_info:" if sources else "    debug_info: []")
        lines += [f"    - {_scalar(source)}" for source in sources]
        lines.append("    include_all_overloads: false")
        lines.append("    is_root_operator: true")
        lines.append("    is_used_for_training: true")
    return "\n".join(lines) + "\n"


def _kernel_keys(operator: SelectedOperator) -> list[str]:
    default = ["default"] if operator.every_dtype else []
    # ExecuTorch's own spelling of a dtype without dim orders.
    dtypes = [f"v1/{int(dtype)};" for dtype in operator.dtypes]
    return sorted([*default, *dtypes, *map(str, operator.all_keys)])


def _sources(operator: SelectedOperator) -> list[str]:
    origins = {origin.source for origin in operator.origins}
    for _, callers in operator.patterns:
        origins.update(origin.source for origin in callers)
    return sorted(origins)


def _mapping(name: str, lists: dict[str, list[str]]) -> list[str]:
    """Lines of a mapping from strings to lists of strings, not empty."""
    if not lists:
        return [f"{name}: {{}}"]
    lines = [f"{name}:"]
    for key in sorted(lists):
        lines.append(f"  {_scalar(key)}:")
        lines += [f"  - {_scalar(item)}" for item in lists[key]]
    return lines


def _boolean(*, value: bool) -> str:
    return "true" if value else "false"


def _scalar(text: str) -> str:
    """A string as a YAML scalar, in quotes where it would not be one without."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_STRINGS:
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if " " <= char <= "~":
        return char
    code = ord(char)
    return f"\\U{code:08x}"
