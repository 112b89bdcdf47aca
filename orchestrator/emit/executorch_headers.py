"""Headers in ExecuTorch's form, for a user who builds ExecuTorch for the same models.

They list what the models need, not what our kernels need internally: our dtype closures
do not apply to ExecuTorch's kernels.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from orchestrator.core.operator import OperatorName
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.errors import ProfileError, SourceSpan
from orchestrator.program.prim_ops import PRIM_OPS
from orchestrator.selection.resolution import Resolution

if TYPE_CHECKING:
    from orchestrator.selection.op_info import SelectedOperator, Selection

_FOLDER = "gen/include"


def executorch_headers(
    head: str, selection: Selection, resolution: Resolution, *, max_kernels: int | None = None
) -> tuple[GeneratedFile, ...]:
    """Every header in ExecuTorch's form, sorted by path.

    Args:
        head: One line: generator and profile.
        selection: The operators that models and profile select.
        resolution: The linked kernels.
        max_kernels: Slots of ExecuTorch's registry; None for as many as are linked, or
            with every operator ExecuTorch's default.

    Source: ExecuTorch `codegen/tools/gen_selected_op_variants.py`,
    `gen_selected_prim_ops.py` and `gen_max_kernel_num.py`, with the code that
    includes them in `kernels/portable/cpu/selective_build.h`,
    `kernels/prim_ops/register_prim_ops.cpp` and
    `runtime/kernel/operator_registry.cpp`.
    """
    count = max_kernels
    if count is None and not selection.every_operator:
        count = len(resolution.table_entries)
    names = {str(selected.name) for selected in selection.operators}
    # Also what only our kernels call: prim ops that a build with ExecuTorch may need
    # for the same programs.
    names |= {str(operator.name) for operator in resolution.operators}
    return (
        GeneratedFile(f"{_FOLDER}/selected_max_kernel_num.h", _kernel_num(head, count)),
        GeneratedFile(f"{_FOLDER}/selected_op_variants.h", _variants(head, selection, resolution)),
        GeneratedFile(
            f"{_FOLDER}/selected_prim_ops.h", _prim_ops(head, names, every=selection.every_operator)
        ),
    )


def check_max_kernels(
    resolution: Resolution, max_kernels: int | None, *, where: SourceSpan
) -> None:
    """Check that the registry has slots for all linked kernels.

    Args:
        resolution: The linked kernels.
        max_kernels: The profile's number; None is always enough.
        where: The profile line with the number.

    Raises:
        ProfileError: `registry-too-small`.
    """
    count = len(resolution.table_entries)
    if max_kernels is not None and max_kernels < count:
        raise ProfileError.of(
            "registry-too-small",
            f"registry.max_kernels has no room for {count} kernels",
            where=where,
            found=f"max_kernels = {max_kernels}",
            expected=f"at least {count}, as many as are linked",
            hint=f"write max_kernels = {count} or more, or leave it out",
        )


def oplist_headers(
    head: str, selection: Selection, *, prim_ops: int | None = None
) -> tuple[GeneratedFile, ...]:
    """Headers for an operator list without a product, sorted by path.

    The registry then holds one kernel per (operator, kernel key) of the list, which is
    the most that any kernel library registers for it, and ExecuTorch's prim ops; those
    among them that the list names as well are counted once.

    Args:
        head: One line: generator and source.
        selection: The operator list.
        prim_ops: Kernels that ExecuTorch always registers; None if it is
            built to register only the prim ops listed.
    """
    registered = sum(
        len(selected.all_keys) + len(selected.dtypes) + selected.every_dtype
        for selected in selection.operators
        if not _is_prim_op(selected.name)
    )
    if prim_ops is None:
        prim_ops = sum(_is_prim_op(selected.name) for selected in selection.operators)
    count = None if selection.every_operator else registered + prim_ops
    names = {str(selected.name) for selected in selection.operators}
    return (
        GeneratedFile("selected_max_kernel_num.h", _kernel_num(head, count)),
        GeneratedFile("selected_op_variants.h", _variants(head, selection, Resolution())),
        GeneratedFile(
            "selected_prim_ops.h", _prim_ops(head, names, every=selection.every_operator)
        ),
    )


def _is_prim_op(name: OperatorName) -> bool:
    # Future versions of ExecuTorch may have more prim ops.
    return name.namespace == "executorch_prim" or name in PRIM_OPS


def _variants(head: str, selection: Selection, resolution: Resolution) -> str:
    """The header that decides which dtypes of operators are instantiated.

    The header includes nothing, like ExecuTorch's: the file that includes it has
    <string_view> and executorch::aten::ScalarType already. With every operator
    selected the answer is always true; with none it is always false, where
    ExecuTorch's tool answers true, as it then has no selection.
    """
    every_dtype = {
        operator.name
        for operator in resolution.operators
        if any(binding.every_dtype for binding in operator.bindings)
    }
    conditions = [
        _condition(selected, every_dtype=selected.every_dtype or selected.name in every_dtype)
        for selected in sorted(selection.operators, key=lambda s: str(s.name))
        if selected.all_keys or selected.dtypes or selected.every_dtype
    ]
    body = "\n || ".join(conditions) or "false"
    if selection.every_operator:
        body = "true"
    return (
        f"#pragma once\n/**\n * {head}\n */\n\n"
        "inline constexpr bool should_include_kernel_dtype(\n"
        "  const char *operator_name,\n"
        "  executorch::aten::ScalarType scalar_type\n"
        ") {\n"
        f"  return {body};\n"
        "}\n"
    )


def _condition(selected: SelectedOperator, *, every_dtype: bool) -> str:
    keys = selected.all_keys
    found = {dtype for key in keys for dtype in key.dtypes} | set(selected.dtypes)
    dtypes = sorted(dtype.name for dtype in found)
    checks = [f"scalar_type == executorch::aten::ScalarType::{d}" for d in dtypes]
    # A key without tensors does not restrict dtypes.
    if every_dtype or not all(key.tensors for key in keys):
        # `v1` alone stands for every dtype, in ExecuTorch's tools as well.
        checks = ["true"]
    # Portable kernels name aten operators without their namespace.
    name = str(selected.name).removeprefix("aten::")
    return (
        f'((std::string_view(operator_name).compare("{name}") == 0)\n'
        f"        && ({' || '.join(checks)}))"
    )


def _prim_ops(head: str, names: set[str], *, every: bool) -> str:
    """A macro per selected operator; ExecuTorch looks for those of prim ops.

    With every operator selected all prim ops have one, even if not listed.
    """
    if every:
        names = names | {str(name) for name in PRIM_OPS}
    macros = dict.fromkeys(
        "INCLUDE_" + re.sub(r"[:._]+", "_", name).upper() for name in sorted(names)
    )
    defines = "".join(f"#define {macro}\n" for macro in macros)
    return f"#pragma once\n/**\n * {head}\n */\n\n{defines}"


def _kernel_num(head: str, count: int | None) -> str:
    """The header with the registry's size; None keeps ExecuTorch's default."""
    text = f"// {head}\n#pragma once\n"
    if count is None:
        return text + "// Every operator is selected: the registry has its default size.\n"
    # ExecuTorch finds too small a number only when it starts.
    return text + f"#define EXECUTORCH_SELECTED_MAX_KERNEL_NUM {count}\n"
