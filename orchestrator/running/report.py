"""What came out of a run: a table for people, data for programs, diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from orchestrator.document import document, picked
from orchestrator.errors import Diagnostic, SourceSpan
from orchestrator.plain_table import table_lines
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Comparison, OutputResult, Tolerance, compare_calls
from orchestrator.running.npy import Array
from orchestrator.running.product import Port
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.status import Explanation
from orchestrator.running.values import Call, ListValue, OtherValue, RunValue, describe, kind_of

_EXACT: Final = Tolerance(atol=0.0, rtol=0.0)
_HEAD: Final = ("call", "method", "output", "value", "largest error", "tolerance", "result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the call that failed on the device did; it ends a run, so there is one.

    Args:
        explanation: What its status means.
        where: Line of the profile that names the model.
    """

    explanation: Explanation
    where: SourceSpan


@dataclass(frozen=True, kw_only=True)
class Ran:
    """Calls that a firmware carried out, and what came of them.

    Args:
        calls: Those of the request.
        results: Of `decode_response`.
        tolerance: Of expected outputs; None if nothing is compared.
        failure: Of the call that failed on the device; None if it is not known.
    """

    calls: Sequence[Call]
    results: Sequence[CallResult]
    tolerance: Tolerance | None = None
    failure: Failure | None = None

    @cached_property
    def outputs(self) -> tuple[OutputResult, ...]:
        """Every output that came, compared where something is expected."""
        return compare_calls(self.calls, self.results, self.tolerance or _EXACT)

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """What to raise as a MismatchError; empty if the run is right."""
        found = [
            _mismatch(self.calls[item.call], item, item.comparison, self.tolerance)
            for item in self.outputs
            if item.comparison is not None and not item.comparison.is_ok
        ]
        found += [
            _device_error(number, self.calls[number], result, self.failure)
            for number, result in enumerate(self.results)
            if result.error is not DeviceError.Ok
        ]
        return tuple(found)

    @property
    def table(self) -> str:
        """A plain table with a line per output, and a newline at the end."""
        rows = [_HEAD]
        for item in self.outputs:
            error, limit, result = "-", "-", "-"
            comparison = item.comparison
            if comparison is not None:
                error = "-" if comparison.problem else f"{comparison.max_abs_error:.3g}"
                limit = str(self.tolerance)
                result = "ok" if comparison.is_ok else "FAIL"
            method = str(self.calls[item.call].method)
            value = _value_text(item)
            rows.append((str(item.call), method, str(item.output), value, error, limit, result))
        return "\n".join(table_lines(rows)) + "\n"

    @property
    def data(self) -> dict[str, object]:
        """All that the text says and more as JSON data; the keys are stable.

        Numbers that are not finite are the texts `inf`, `-inf` and `nan`. `ok` is true if
        every call was carried out and no output is out of tolerance.
        """
        return {
            "ok": not self.problems,
            "tolerance": self.tolerance and picked(self.tolerance, "atol", "rtol"),
            "calls": [
                {
                    "model": call.method.model,
                    "method": call.method.name,
                    "fresh": call.fresh,
                    **picked(result, "error", "instruction"),
                    "failure": _failure_data(result, self.failure),
                    "state_bytes": call.method.state_bytes,
                    "state_used_bytes": result.state_used_bytes,
                    "outputs": [_output_data(o) for o in self.outputs if o.call == number],
                }
                for number, (call, result) in enumerate(zip(self.calls, self.results, strict=False))
            ],
        }


def _value_text(item: OutputResult) -> str:
    """`Float [1, 12]` for a tensor, else the value."""
    if isinstance(item.value, Array) and item.port.dtype is not None:
        return f"{item.port.dtype.name} {list(item.value.shape)}"
    return describe(item.value)


def _failure_data(result: CallResult, failure: Failure | None) -> dict[str, object] | None:
    """As `orchestrator decode` says it, and the line of the profile."""
    if result.error is DeviceError.Ok or failure is None:
        return None
    return {**failure.explanation.data, "where": str(failure.where)}


def _output_data(item: OutputResult) -> dict[str, object]:
    compared = item.comparison and _comparison_data(item.comparison)
    return {**_value_data(item.value, item.port), "comparison": compared}


def _value_data(value: RunValue, port: Port) -> dict[str, object]:
    """Numbers and texts; of tensors what they are."""
    data: dict[str, object] = {"kind": kind_of(value).label}
    match value:
        case Array():
            return {**data, **picked(port, "dtype"), "sizes": list(value.shape)}
        case ListValue(kind=ValueKind.TENSOR_LIST, items=items):
            found = [_value_data(item, own) for item, own in zip(items, port.items, strict=True)]
            return {**data, "items": found}
        case ListValue(items=items):
            return {**data, "value": document(items)}
        case OtherValue():
            return data
    return {**data, "value": document(value)}


def _comparison_data(comparison: Comparison) -> dict[str, object]:
    worst = comparison.worst
    return {
        "ok": comparison.is_ok,
        "problem": comparison.problem,
        "elements": comparison.element_count,
        "failed": comparison.failed_count,
        **picked(comparison, "max_abs_error", "max_rel_error"),
        "worst": worst and {**picked(worst, "index", "got"), "expected": document(worst.want)},
    }


def _mismatch(
    call: Call, item: OutputResult, comparison: Comparison, tolerance: Tolerance | None
) -> Diagnostic:
    notes = [("at", f"call {item.call} of {call.method}, output {item.output}")]
    if comparison.problem:
        notes.append(("found", comparison.problem))
        hint = "the expected output was made for another model"
    else:
        count = f"{comparison.failed_count} of {comparison.element_count} elements"
        notes.append(("found", f"{count} differ by more than {tolerance}"))
        hint = "compare the model file with the one the expected outputs were made with"
    if comparison.worst is not None:
        worst = comparison.worst
        place = f"element {list(worst.index)}: " if worst.index else ""
        got, want = _number_text(worst.got), _number_text(worst.want)
        notes.append(("worst", f"{place}{got}, expected {want}"))
        notes.append(("largest error", f"{comparison.max_abs_error:.6g}"))
    return Diagnostic(
        code="run-mismatch",
        message=f"output {item.output} of {call.method} is not what was expected",
        notes=tuple(notes),
        hint=hint,
    )


def _number_text(number: complex) -> str:
    return str(number) if isinstance(number, int) else f"{number:.9g}"


def _device_error(
    number: int, call: Call, result: CallResult, failure: Failure | None
) -> Diagnostic:
    error, method = result.error, call.method
    stage, step, source = "could not be loaded", "", ""
    if result.instruction is not None:
        stage, step = "stopped", str(result.instruction)
    hint = "see what the firmware printed"
    if failure is not None:
        step, source = failure.explanation.place.step, failure.explanation.place.source
        hint = failure.explanation.remedy
    return Diagnostic(
        code="device-error",
        message=f"{method} {stage} on the device: {error.name}",
        where=None if failure is None else failure.where,
        notes=(
            ("at", f"call {number}"),
            ("model", method.model),
            ("method", method.name),
            *((("instruction", step),) if step else ()),
            *((("exported from", source),) if source else ()),
            ("error", f"{error.name} ({int(error)}): {error.meaning}"),
            ("method state", f"{result.state_used_bytes} of {method.state_bytes} bytes used"),
        ),
        hint=_HINTS.get(error, hint),
    )


_HINTS: Final = {
    DeviceError.ImageDamaged: "build the profile again: the firmware was changed after"
    " it was linked"
}
"""Where a run knows more than the status of the device says."""
