"""Calls with packed weights: these hold everything but addresses."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.passes import pack_weights
from orchestrator.method.passes.preparing.form import Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer


def _preparer(function: str) -> Preparer:
    form = Form(
        function=function.removesuffix("_out"),
        struct="orch::cortex_m::PackedCall",
        memory=tuple((name, at) for at, name in enumerate(pack_weights.ARGUMENTS)),
    )

    def prepare(_arguments: Arguments, _isa: str) -> Form:
        return form

    return prepare


PACKED: Final[Mapping[str, Preparer]] = MappingProxyType(
    {function: _preparer(function) for function in sorted(pack_weights.PACKED)}
)
