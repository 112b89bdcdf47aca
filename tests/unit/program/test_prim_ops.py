"""The table of prim ops against the kernels, and what they return."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.dtype import FLOATING, ScalarType
from orchestrator.core.operator import ArgKind
from orchestrator.program.prim_ops import PRIM_OPS, result_kind

I, D, B = ArgKind.INT, ArgKind.FLOAT, ArgKind.BOOL  # noqa: E741


def test_every_prim_op_has_a_kernel_of_its_signature() -> None:
    file = Path(__file__).parents[3] / "kernels" / "prim_ops" / "functions.yaml"
    text = file.read_text(encoding="utf-8")
    catalog = read_catalog([LibraryText(name="prim_ops", file=str(file), text=text)])
    ((_, kernels),) = catalog.libraries
    assert {k.operator: k.schema.signature for k in kernels} == PRIM_OPS
    assert len(kernels) == len(PRIM_OPS) == 28
    assert all(not kernel.keys for kernel in kernels)


@pytest.mark.parametrize(
    ("signature", "arguments", "kind"),
    [
        ("SS>B", [I, D], B),
        ("S>I", [D], I),
        ("S>D", [I], D),
        ("SS>S", [I, I], I),
        ("SS>S", [I, D], D),
        ("SS>S", [D, I], D),
        ("SS>S", [B, B], B),
        ("SS>S", [B, I], I),
        ("SS>S", [None, B], I),
        ("BSS>S", [B, I, I], I),
        ("BSS>S", [B, B, B], B),
        ("T>S", [ScalarType.Bool], B),
        ("T>S", [ScalarType.Long], I),
        *(("T>S", [dtype], D) for dtype in sorted(FLOATING)),
        ("TJ>t", [ScalarType.Float, None], None),
        ("tTI", [ScalarType.Float, ScalarType.Float, I], None),
    ],
)
def test_kind_of_the_result(
    signature: str, arguments: list[ArgKind | ScalarType | None], kind: ArgKind | None
) -> None:
    assert result_kind(signature, arguments) is kind
