"""Text of `selected_operators.yaml`.

Written by hand: the form is fixed, importing PyYAML takes longer than all the rest of
the stage, and the tests hold the text to what PyYAML writes and reads.

Source: ExecuTorch `codegen/tools/gen_oplist.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.selection.op_info import SelectedOperator, Selection

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
