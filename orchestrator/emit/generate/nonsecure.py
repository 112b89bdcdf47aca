"""Functions of the secure side of TrustZone that the non-secure side may call.

A file for the secure side, compiled with `-mcmse` by the application, and a header with
the API for the other one. Arguments come in a struct: an entry function takes at most
what fits into four registers.

Source: Armv8-M Security Extensions: Requirements on Development Tools, ACLE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.render import render
from orchestrator.memory.plan import identifier
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod, Port

FOLDER: Final = "nonsecure"
"""Folder of both files in the build folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A member of the struct of arguments.

    Args:
        c_type: Its type.
        name: Its name.
        is_input: Whether the product reads what it points to, or itself.
        is_array: Whether it points to an array.
        size: Bytes behind it, as an expression; "" if it is no pointer.
        own: Declaration of a secure copy, of what is read more than once or written by
            the product; "" for none.
        argument: What the function of the API gets.
    """

    c_type: str
    name: str
    is_input: bool
    is_array: bool = True
    size: str = ""
    own: str = ""
    argument: str


def nonsecure_files(profile: str, head: str, methods: Sequence[ApiMethod]) -> list[GeneratedFile]:
    """Entry functions of a product, and the header of the non-secure side."""
    entries = [method for method in methods if _has_entry(method)]
    return [
        GeneratedFile(
            f"{FOLDER}/{profile}_{template}",
            render(
                template,
                profile=profile,
                head=head,
                guard=f"{identifier(profile).upper()}_NONSECURE_H_",
                entries=entries,
                left_out=[method for method in methods if method not in entries],
                members=lambda method: [x for port in method.ports for x in _members(port)],
            ),
        )
        for template in ("nonsecure.h", "nonsecure.c")
    ]


def _has_entry(method: ApiMethod) -> bool:
    """Whether it has arguments, arrays and numbers alone, and arrays are copied."""
    # Lists and texts give pointers to secure memory away; memory of the caller would be
    # read while the other side may change it.
    found = [port.is_text or port.is_list or port.is_given for port in method.ports]
    # Without arguments the struct would be empty, which C does not have.
    return bool(found) and not any(found) and not method.by_rows


def _members(port: Port) -> Iterator[_Member]:
    name, c_type, is_input = port.name, port.c_type, port.is_input
    const = "const " if is_input else ""
    if not isinstance(port.value, TensorValue):
        yield _Member(
            c_type=c_type if is_input else f"{c_type}*",
            name=name,
            is_input=is_input,
            is_array=False,
            size="" if is_input else f"sizeof *{name}",
            # Written to a variable of this side first: the check of an address is made
            # once, and the other side may change the struct meanwhile.
            own="" if is_input else f"{c_type} own_{name}",
            argument=name if is_input else f"&own_{name}",
        )
        return
    yield _Member(
        c_type=f"{const}{c_type}*",
        name=name,
        is_input=is_input,
        size=f"{max(port.value.numel, 1)} * sizeof *{name}",
        argument=name,
    )
    if port.value.is_dynamic:
        rank = max(len(port.value.sizes), 1)
        yield _Member(
            c_type=f"{const}int32_t*",
            name=f"{name}_sizes",
            is_input=is_input,
            size=f"sizeof(int32_t) * {rank}",
            own=f"int32_t own_{name}_sizes[{rank}]",
            argument=f"own_{name}_sizes",
        )
