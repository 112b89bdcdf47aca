"""The key `requires` of an entry: what its kernel demands of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.condition import check_condition
from orchestrator.catalog.expressions.values import ExpressionError

if TYPE_CHECKING:
    from yaml.nodes import Node

    from orchestrator.catalog.nodes import YamlFile
    from orchestrator.core.operator import OpSchema


def conditions(file: YamlFile, node: Node | None, schema: OpSchema) -> tuple[str, ...]:
    """Conditions in the order of the file.

    Args:
        file: Where problems are noted.
        node: The key's value.
        schema: Of the entry's operator.
    """
    found = (file.scalars(node, "`requires`") if node is not None else None) or []
    texts = []
    for written, item in found:
        text = " ".join(written.split())
        try:
            check_condition(text, schema)
        except ExpressionError as error:
            file.problem(
                "bad-condition",
                f"`requires`: {error}",
                item,
                notes=(("found", text), ("schema", schema.text)),
                hint="docs/kernels.md says what a condition may hold",
            )
        else:
            texts.append(text)
    return tuple(texts)
