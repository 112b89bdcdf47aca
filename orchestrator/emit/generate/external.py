"""Tables of external constants, in which the loader finds them by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from orchestrator.emit.generate.prelinked import constant_symbol
from orchestrator.program.program import Program


def external_symbols(programs: Mapping[str, Program], model: str) -> list[str]:
    """Symbols of the data of a loaded model."""
    return [constant_symbol(model, i) for i in range(len(programs[model].external))]


def external_table(programs: Mapping[str, Program], linked: Collection[str]) -> str:
    """The table for all loaded models; "" if no model needs it."""
    models = [n for n, p in programs.items() if p.external and n not in linked]
    if not models:
        return ""
    parts = []
    for model in models:
        entries = ",\n".join(
            f"    {{{_text(e.name)}, {symbol}, {len(e.data)}, ScalarType::{e.dtype.name}}}"
            for e, symbol in zip(
                programs[model].external, external_symbols(programs, model), strict=True
            )
        )
        parts.append(f"constexpr ExternalData {model}_data[] = {{\n{entries}}};")
    rows = ",\n".join(f'    {{"{model}", {model}_data}}' for model in models)
    parts.append(f"constexpr ModelData kDataTable[] = {{\n{rows}}};")
    return "\n\n".join(parts)


def _text(name: str) -> str:
    """A C string literal with exactly these bytes."""
    plain = b"._-/: " + bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123))
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in name.encode()) + '"'
