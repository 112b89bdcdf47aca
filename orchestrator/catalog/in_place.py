"""The key `in_place` of an entry: inputs that may lie where the output does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.core.operator import ArgKind
from orchestrator.errors import did_you_mean

if TYPE_CHECKING:
    from yaml.nodes import Node

    from orchestrator.catalog.nodes import YamlFile
    from orchestrator.core.operator import OpSchema


def in_place_arguments(
    file: YamlFile, node: Node | None, schema: OpSchema
) -> tuple[str, ...]:
    """Arguments that may be the same memory as the output, in the schema's order.

    Args:
        file: Where problems are noted.
        node: The key's value.
        schema: Of the entry's operator.
    """
    if node is None:
        return ()
    outs = [a.name for a in schema.arguments if a.is_out]
    if len(outs) != 1:
        file.problem(
            "bad-entry",
            f"`in_place` is for operators with one output; {schema.name} has"
            f" {len(outs)}",
            node,
            hint="leave it out",
        )
        return ()
    known = [
        a.name
        for a in schema.arguments
        if a.kind is ArgKind.TENSOR and a.name not in outs
    ]
    found = file.scalars(node, "`in_place`") or []
    for name, item in found:
        if name not in known:
            file.problem(
                "unknown-argument",
                f'"{name}" is not an input of {schema.name}',
                item,
                notes=(("known", ", ".join(known) or "none"),),
                hint=did_you_mean(name, known) or "name tensors that the kernel reads",
            )
    named = {name for name, _ in found}
    return tuple(name for name in known if name in named)
