"""Answers for programs: the documents of `--json`, with stable keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel

if TYPE_CHECKING:
    from orchestrator.explain.why import DelegateUse, KernelUse, PartUse, Requester, Why
    from orchestrator.explain.why_not import Absence, WhyNot
    from orchestrator.selection.resolution import Binding


def why_document(answer: Why) -> dict[str, Any]:
    """The document of `orchestrator why --json`."""
    return {
        "profile": answer.profile,
        "name": answer.name,
        "built": answer.built,
        "kernels": [_use(use) for use in answer.kernels],
        "delegates": [_delegate(use) for use in answer.delegates],
        "parts": [_part(use) for use in answer.parts],
    }


def why_not_document(answer: WhyNot) -> dict[str, Any]:
    """The document of `orchestrator why --not --json`."""
    return {
        "profile": answer.profile,
        "name": answer.name,
        "dtype": None if answer.dtype is None else answer.dtype.name,
        "absences": [_absence(absence) for absence in answer.absences],
    }


def _dtypes(dtypes: Iterable[ScalarType]) -> list[str]:
    return [dtype.name for dtype in sorted(dtypes)]


def _requesters(requesters: Iterable[Requester]) -> list[dict[str, Any]]:
    return [
        {
            "source": a.source,
            "method": a.method or None,
            "calls": len(a.instructions),
            "instructions": list(a.instructions),
        }
        for a in requesters
    ]


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "library": kernel.library,
        "function": kernel.function,
        "entry": kernel.entry,
        "sources": [f"kernels/{kernel.library}/{s}" for s in kernel.sources],
    }


def _use(use: KernelUse) -> dict[str, Any]:
    parts = use.parts
    return {
        "operator": str(use.operator),
        "asked_by": _requesters(use.requesters),
        **_kernel(use.binding.kernel),
        "keys": [str(key) for key in use.binding.keys],
        "table_keys": [None if k is None else str(k) for k in use.table_keys],
        "dtypes": _dtypes(use.binding.dtypes),
        "closure_dtypes": _dtypes(use.closure_dtypes),
        "every_dtype": use.binding.every_dtype,
        "shared_with": [str(operator) for operator in use.shared_with],
        "flash_bytes": None if parts is None else sum(p.flash_bytes for p in parts),
        "ram_bytes": None if parts is None else sum(p.ram_bytes for p in parts),
    }


def _delegate(use: DelegateUse) -> dict[str, Any]:
    code, parts = use.code, use.parts
    return {
        "backend": code.backend,
        "asked_by": _requesters(use.requesters),
        "namespace": code.namespace,
        "state_bytes": code.state_bytes,
        **({"named_data": use.data} if use.data else {}),
        "sources": [f"delegates/{code.backend}/{s}" for s in code.sources],
        "flash_bytes": None if parts is None else sum(p.flash_bytes for p in parts),
        "ram_bytes": None if parts is None else sum(p.ram_bytes for p in parts),
    }


def _part(use: PartUse) -> dict[str, Any]:
    return {
        "kind": str(use.part.kind),
        "name": use.part.name,
        "reason": use.reason,
        "flash_bytes": use.part.flash_bytes,
        "ram_bytes": use.part.ram_bytes,
        "operators": [str(operator) for operator in use.operators],
        "symbols": [
            {
                "name": s.name,
                "symbol": s.symbol,
                "size_bytes": s.size_bytes,
                "section": s.section,
                "object": s.object,
            }
            for s in use.symbols
        ],
    }


def _binding(binding: Binding) -> dict[str, Any]:
    return {**_kernel(binding.kernel), "dtypes": _dtypes(binding.dtypes)}


def _absence(absence: Absence) -> dict[str, Any]:
    used, known = absence.nearest_used, absence.nearest_known
    return {
        "operator": str(absence.operator),
        "reason": str(absence.reason),
        "message": absence.message,
        "listed_by": _requesters(absence.listed_by),
        "has": [_binding(binding) for binding in absence.serving],
        "links": [_binding(binding) for binding in absence.adds],
        "problems": [
            {
                "code": gap.code,
                "message": gap.message,
                "notes": [{"label": label, "text": text} for label, text in gap.notes],
                "hint": gap.hint,
            }
            for gap in absence.gaps
        ],
        "nearest_used": None if used is None else str(used),
        "nearest_known": None if known is None else str(known),
        "remedy": absence.remedy or None,
    }
