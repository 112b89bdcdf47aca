"""The key `scratch` of an entry: sizes of its scratch arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.scratch_size import check_size
from orchestrator.catalog.expressions.values import ExpressionError
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.errors import did_you_mean

if TYPE_CHECKING:
    from yaml.nodes import Node

    from orchestrator.catalog.nodes import YamlFile
    from orchestrator.core.operator import OpSchema


def scratch_sizes(
    file: YamlFile, node: Node | None, schema: OpSchema
) -> tuple[tuple[str, str], ...]:
    """Expressions for the sizes of scratch arguments, in the schema's order.

    Without the key there are none: a library in ExecuTorch's own form has no sizes,
    which matters only to those who call an operator that needs them.

    Args:
        file: Where problems are noted.
        node: The key's value.
        schema: Of the entry's operator.
    """
    fields = file.mapping(node, "`scratch`") if node is not None else None
    if node is None or fields is None:
        return ()
    known = [argument.name for _, argument in scratch_arguments(schema)]
    sizes = {}
    for name, value in fields.items():
        text = file.scalar(value, f"`scratch` of {name}")
        if name not in known:
            file.problem(
                "unknown-argument",
                f'"{name}" is not a scratch argument of {schema.name}',
                value,
                notes=(("known", ", ".join(known) or "none"),),
                hint=did_you_mean(name, known)
                or "scratch arguments are tensors named scratch, or ..._scratch",
            )
        elif text is not None:
            sizes[name] = _checked(file, value, name, text, schema)
    for name in known:
        if name not in fields:
            file.problem(
                "missing-argument",
                f'`scratch` says nothing about the argument "{name}"',
                node,
                hint="give the size of every scratch argument, 0 if it is not used",
            )
    return tuple((name, sizes[name]) for name in known if name in sizes)


def _checked(file: YamlFile, node: Node, name: str, text: str, schema: OpSchema) -> str:
    text = " ".join(text.split())
    try:
        check_size(text, schema)
    except ExpressionError as error:
        file.problem(
            "bad-scratch-size",
            f"`scratch` of {name}: {error}",
            node,
            notes=(("found", text), ("schema", schema.text)),
            hint="docs/scratch.md tells what such an expression may hold",
        )
    return text
