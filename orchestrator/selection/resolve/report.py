"""`resolution.json`: what is linked, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable

from orchestrator.core.dtype import ScalarType
from orchestrator.selection.op_info import Origin
from orchestrator.selection.resolution import Binding, Resolution


def resolution_json(resolution: Resolution) -> str:
    """Canonical JSON text of a resolution, ending in a newline.

    It holds no paths but those of sources, which are relative to their library, and no
    line numbers, so it changes only if what is linked changes.
    """
    document = {
        "schema": 1,
        "operators": [
            {
                "operator": str(operator.name),
                "schema": operator.schema.text,
                "kernels": [_kernel(binding) for binding in operator.bindings],
            }
            for operator in resolution.operators
        ],
        "sources": [
            {"library": library, "files": list(files)} for library, files in resolution.sources
        ],
        "delegates": [
            {
                "backend": delegate.code.backend,
                "namespace": delegate.code.namespace,
                "sources": list(delegate.code.sources),
                "state_bytes": delegate.code.state_bytes,
                **({"named_data": True} if delegate.code.named_data else {}),
                "origins": _origins(delegate.origins),
            }
            for delegate in resolution.delegates
        ],
        "missing": [
            {"name": missing.name, "reason": missing.reason, "origins": _origins(missing.origins)}
            for missing in resolution.missing
        ],
        "table": [
            {
                "operator": str(entry.operator),
                "key": None if entry.key is None else str(entry.key),
                "function": entry.function,
                "signature": entry.signature,
                "dtypes": _names(entry.dtypes),
            }
            for entry in resolution.table_entries
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _kernel(binding: Binding) -> dict[str, object]:
    return {
        "library": binding.kernel.library,
        "function": binding.kernel.function,
        "sources": sorted(binding.kernel.sources),
        "keys": [str(key) for key in binding.keys],
        "dtypes": _names(binding.dtypes),
        "argument_dtypes": {n: _names(dtypes) for n, dtypes in binding.argument_dtypes},
        "every_dtype": binding.every_dtype,
        "origins": _origins(binding.origins),
    }


def _names(dtypes: Iterable[ScalarType]) -> list[str]:
    return [dtype.name for dtype in sorted(dtypes)]


def _origins(origins: Iterable[Origin]) -> list[dict[str, object]]:
    """One item per method, with all of its instructions, or per profile key."""
    methods: dict[tuple[str, str], list[int]] = {}
    for origin in origins:
        key = (origin.source, origin.method)
        methods.setdefault(key, []).append(origin.instruction)
    return [
        {"source": source, "method": method, "instructions": [i for i in instructions if i >= 0]}
        if method
        else {"source": source}
        for (source, method), instructions in methods.items()
    ]
