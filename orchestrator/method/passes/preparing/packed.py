"""Calls with packed weights: these hold everything but addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.passes import pack_weights
from orchestrator.method.passes.preparing.form import Form

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer


def _preparer(function: str) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        names = pack_weights.arguments_of(function, arguments.count)
        places = {name: at for at, name in enumerate(names)}
        form = Form(
            function=function.removesuffix("_out"),
            struct="orch::cortex_m::PackedCall",
            memory=tuple((n, places.get(n)) for n in pack_weights.ARGUMENTS),
        )
        if "low" not in places:
            return form
        limits = tuple((n, arguments.number(places[n])) for n in ("low", "high"))
        return replace(
            form, struct="orch::cortex_m::LimitedPackedCall", numbers=(("range", limits),)
        )

    return prepare


PACKED: Final[Mapping[str, Preparer]] = MappingProxyType(
    {function: _preparer(function) for function in sorted(pack_weights.PACKED)}
)
