"""`[[models]]` with `source`: what goes with which lowering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.profile.explain import key_text
from orchestrator.profile.fields import shown
from orchestrator.profile.lowering import (
    ETHOS_U,
    LOWERINGS,
    PORTABLE,
    VELA_MEMORY_MODES,
    Activations,
    Quantize,
    Weights,
    refusal,
    system_configs_of,
)
from orchestrator.profile.parsed import table_of, text_of
from orchestrator.profile.source_fields import is_section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.profile.checked import KeyPath
    from orchestrator.profile.document import Document


def check_quantize(document: Document, index: int) -> Iterator[Diagnostic]:
    """What a lowering cannot quantize so."""
    table = table_of(document, "models", index, "quantize")
    lowering = text_of(document, "models", index, "lowering") or PORTABLE
    dynamic = table.get("dynamic", False)
    activations = str(table.get("activations", Activations.INT8))
    weights = str(table.get("weights", Weights.PER_CHANNEL))
    if (
        lowering not in LOWERINGS
        or activations not in list(Activations)
        or weights not in list(Weights)
        or not isinstance(dynamic, bool)
    ):
        return  # the validators report that
    quantize = Quantize(
        activations=Activations(activations), weights=Weights(weights), dynamic=dynamic
    )
    key, expected = refusal(lowering, quantize)
    if key:
        where = ("models", index, "quantize", key)
        yield Diagnostic(
            code="bad-choice",
            message=f"{key_text(where)} cannot be {shown(table[key])} with {lowering}",
            where=document.span(*where),
            notes=(("expected", expected),),
            hint="leave it out, or choose another lowering",
        )


def check_vela(document: Document, index: int) -> Iterator[Diagnostic]:
    """Whether Vela is asked at all, and has the sections that are named."""
    where: KeyPath = ("models", index, "vela")
    lowering = text_of(document, "models", index, "lowering") or PORTABLE
    if "vela" not in table_of(document, "models", index) or lowering not in LOWERINGS:
        return
    if lowering not in ETHOS_U:
        yield Diagnostic(
            code="bad-choice",
            message=f"{key_text(where)} is for Ethos-U",
            where=document.span(*where),
            notes=(("found", f'lowering = "{lowering}"'),),
            hint="leave it out, or choose a lowering for Ethos-U",
        )
        return
    config = text_of(document, *where, "config")
    if config is not None:
        yield from _check_config_path(document, (*where, "config"), config)
        return
    for key, known in (
        ("system_config", system_configs_of(lowering)),
        ("memory_mode", VELA_MEMORY_MODES),
    ):
        name = text_of(document, *where, key)
        if name is not None and is_section(name) and name not in known:
            yield Diagnostic(
                code="bad-choice",
                message=f"{key_text((*where, key))} cannot be {shown(name)} with"
                f" {lowering}",
                where=document.span(*where, key),
                notes=(("expected", ", ".join(known)),),
                hint=did_you_mean(name, known)
                or "name one of them, or a file of your own with `config`",
            )


def _check_config_path(
    document: Document, where: KeyPath, path: str
) -> Iterator[Diagnostic]:
    """What Vela's command line takes."""
    if path.endswith(".ini") and not any(map(str.isspace, path)):
        return
    yield Diagnostic(
        code="bad-value",
        message=f"{key_text(where)} cannot be {shown(path)}",
        where=document.span(*where),
        notes=(("expected", "a path without spaces that ends in .ini"),),
        hint="Vela takes no other; rename the file",
    )
