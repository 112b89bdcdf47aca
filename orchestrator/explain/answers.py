"""Answers for people as text, and for programs as documents with stable keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.core.dtype import dtype_names
from orchestrator.document import document, picked
from orchestrator.errors import Diagnostic
from orchestrator.explain.why import DelegateUse, KernelUse, PartUse, Requester, Why
from orchestrator.explain.why_not import Absence, WhyNot
from orchestrator.measure.size import Contributor
from orchestrator.printable import printable
from orchestrator.selection.resolution import Binding

# Answers for people.

_SHOWN = 6  # instructions, keys or symbols named before "and N more"


def why_text(answer: Why) -> str:
    """What `orchestrator why` prints; ends in a newline."""
    blocks = [_part_lines(use) for use in answer.parts]
    blocks += [_delegate_lines(use, answer.file) for use in answer.delegates]
    last = None
    for use in answer.kernels:
        lines = [] if use.operator == last else [f"{use.operator}"]
        blocks.append(lines + _kernel_lines(use, answer.file))
        last = use.operator
    return _joined(blocks)


def why_not_text(answer: WhyNot) -> str:
    """What `orchestrator why --not` prints; ends in a newline."""
    blocks = [_absence_lines(absence) for absence in answer.absences]
    return _joined(blocks)


def _joined(blocks: Iterable[Iterable[str]]) -> str:
    """Blocks of lines, one empty line between them."""
    # A name from a program may have line ends, too.
    return "\n".join("".join(f"{printable(x)}\n" for x in lines) for lines in blocks)


def _row(label: str, text: str) -> str:
    return f"  {label:<11}{text}"


def _rows(label: str, texts: Iterable[str]) -> list[str]:
    """Rows of which only the first has the label."""
    return [_row("" if i else label, text) for i, text in enumerate(texts)]


def _several(items: Sequence[object], separator: str = ", ") -> str:
    shown = separator.join(map(str, items[:_SHOWN]))
    more = len(items) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _bytes(parts: Iterable[Contributor]) -> str:
    found = tuple(parts)
    flash = sum(part.flash_bytes for part in found)
    ram = sum(part.ram_bytes for part in found)
    return f"{flash:,} bytes of flash, {ram:,} of RAM"


def _requester(requester: Requester) -> str:
    if not requester.method:
        return requester.source
    text = f'model "{requester.source}", method "{requester.method}"'
    count = len(requester.instructions)
    if not count:
        return text
    calls = "1 call, instruction" if count == 1 else f"{count} calls, instructions"
    return f"{text}: {calls} {_several(requester.instructions)}"


def _kernel_lines(use: KernelUse, file: str) -> list[str]:
    binding, kernel = use.binding, use.binding.kernel
    calls = binding.dtypes - use.closure_dtypes
    dtypes = dtype_names(calls) + (" (all it has)" if binding.every_dtype else "")
    if use.closure_dtypes:
        dtypes += f"; inside it also {dtype_names(use.closure_dtypes)} (closure)"
    keys = [str(key) for key in use.table_keys if key is not None]
    found_by = [_several(keys, "  ")] if keys else []
    if None in use.table_keys:
        found_by.append("any other kernel key" if keys else "any kernel key")
    cost = _cost(use.parts, file)
    if use.shared_with:
        cost += f"; shared with {_several(use.shared_with)}"
    return [
        *_rows("needed by", map(_requester, use.requesters)),
        _row("kernel", f"{kernel.function} of library {kernel.library}"),
        _row("", kernel.entry),
        *_rows("source", (f"kernels/{kernel.library}/{s}" for s in kernel.sources)),
        *([_row("calls", _several(binding.keys, "  "))] if binding.keys else []),
        *([_row("matches", ", ".join(found_by))] if found_by else []),
        _row("dtypes", dtypes),
        _row("cost", cost),
    ]


def _delegate_lines(use: DelegateUse, file: str) -> list[str]:
    code = use.code
    return [
        f"{code.backend}",
        *_rows("needed by", map(_requester, use.requesters)),
        _row("delegate", f"{code.namespace}, {code.state_bytes:,} bytes of state each"),
        *_rows("source", (f"delegates/{code.backend}/{s}" for s in code.sources)),
        *_rows("named data", (f"{m}: {k}, {n:,} bytes" for m, k, n in use.data)),
        _row("cost", _cost(use.parts, file)),
    ]


def _cost(parts: Sequence[Contributor] | None, file: str) -> str:
    if parts is None:
        return f"not built: run `orchestrator build {file}`"
    return _bytes(parts) if parts else "none in the last build"


def _part_lines(use: PartUse) -> list[str]:
    part = use.part
    shown = use.symbols[:_SHOWN]
    lines = [
        f"{part.name} ({part.kind.replace('_', ' ')})",
        _row("reason", use.reason),
        *_rows("serves", map(str, use.operators)),
        _row("cost", _bytes([part])),
        *_rows("symbol", (f"{s.name}, {s.size_bytes:,} bytes" for s in shown)),
    ]
    if len(use.symbols) > _SHOWN:
        lines.append(_row("", f"and {len(use.symbols) - _SHOWN} more"))
    return lines


def _binding(binding: Binding) -> str:
    kernel = binding.kernel
    return f"{kernel.function} ({kernel.library}) with {dtype_names(binding.dtypes)}"


def _absence_lines(absence: Absence) -> list[str]:
    lines = [absence.message]
    lines += _rows("listed by", map(_requester, absence.listed_by))
    lines += _rows("has", map(_binding, absence.serving))
    for gap in absence.gaps:
        lines.append(_row("problem", gap.message))
        lines += [_row("", f"{label}: {text}") for label, text in gap.notes]
    # Without a remedy of its own, the hint of the problem is the remedy.
    hints = dict.fromkeys(gap.hint for gap in absence.gaps if not absence.remedy)
    lines += _rows("remedy", hints)
    if absence.nearest_used is not None:
        lines.append(_row("nearest", f"{absence.nearest_used} is in the product"))
    if absence.nearest_known is not None:
        lines.append(_row("nearest", f"{absence.nearest_known} has a kernel"))
    if absence.remedy:
        lines.append(_row("remedy", absence.remedy))
    lines += _rows("links", map(_binding, absence.adds))
    return lines


# Answers for programs: the documents of `--json`, with stable keys.


def why_document(answer: Why) -> dict[str, Any]:
    """The document of `orchestrator why --json`."""
    return {
        **picked(answer, "profile", "name", "built"),
        "kernels": [_use(use) for use in answer.kernels],
        "delegates": [_delegate(use) for use in answer.delegates],
        "parts": [_part(use) for use in answer.parts],
    }


def why_not_document(answer: WhyNot) -> dict[str, Any]:
    """The document of `orchestrator why --not --json`."""
    return {
        **picked(answer, "profile", "name", "dtype"),
        "absences": [_absence(absence) for absence in answer.absences],
    }


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


def _kernel(binding: Binding) -> dict[str, Any]:
    kernel = binding.kernel
    sources = [f"kernels/{kernel.library}/{s}" for s in kernel.sources]
    return {**picked(kernel, "library", "function", "entry"), "sources": sources}


def _sums(parts: Sequence[Contributor] | None) -> dict[str, int | None]:
    names = ("flash_bytes", "ram_bytes")
    return {n: None if parts is None else sum(getattr(p, n) for p in parts) for n in names}


def _use(use: KernelUse) -> dict[str, Any]:
    return {
        "operator": str(use.operator),
        "asked_by": _requesters(use.requesters),
        **_kernel(use.binding),
        "keys": document(use.binding.keys),
        "table_keys": document(use.table_keys),
        "dtypes": document(use.binding.dtypes),
        "closure_dtypes": document(use.closure_dtypes),
        "every_dtype": use.binding.every_dtype,
        "shared_with": document(use.shared_with),
        **_sums(use.parts),
    }


def _delegate(use: DelegateUse) -> dict[str, Any]:
    code = use.code
    return {
        "backend": code.backend,
        "asked_by": _requesters(use.requesters),
        **picked(code, "namespace", "state_bytes"),
        **({"named_data": use.data} if use.data else {}),
        "sources": [f"delegates/{code.backend}/{s}" for s in code.sources],
        **_sums(use.parts),
    }


def _part(use: PartUse) -> dict[str, Any]:
    symbol = ("name", "symbol", "size_bytes", "section", "object")
    return {
        **picked(use.part, "kind", "name"),
        "reason": use.reason,
        **picked(use.part, "flash_bytes", "ram_bytes"),
        **picked(use, "operators"),
        "symbols": [picked(s, *symbol) for s in use.symbols],
    }


def _bindings(bindings: Iterable[Binding]) -> list[dict[str, Any]]:
    return [{**_kernel(binding), **picked(binding, "dtypes")} for binding in bindings]


def _problem(gap: Diagnostic) -> dict[str, Any]:
    notes = [{"label": label, "text": text} for label, text in gap.notes]
    return {**picked(gap, "code", "message"), "notes": notes, "hint": gap.hint}


def _absence(absence: Absence) -> dict[str, Any]:
    return {
        **picked(absence, "operator", "reason", "message"),
        "listed_by": _requesters(absence.listed_by),
        "has": _bindings(absence.serving),
        "links": _bindings(absence.adds),
        "problems": [_problem(gap) for gap in absence.gaps],
        **picked(absence, "nearest_used", "nearest_known"),
        "remedy": absence.remedy or None,
    }
