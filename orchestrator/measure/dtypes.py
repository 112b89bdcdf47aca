"""Whether selecting dtypes pays: a firmware against the same with every dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.measure.size import DtypeComparison, LargerKernel

if TYPE_CHECKING:
    from orchestrator.measure.size import SizeReport


def compare_dtypes(selected: SizeReport, every: SizeReport) -> DtypeComparison:
    """What the selection of dtypes does to a firmware, and to each operator.

    An operator's bytes are all the code it needs and that not every product has, also
    what it shares with other operators: which object the linker takes a shared
    function from differs between the two.

    Args:
        selected: With the dtypes that the profile selects.
        every: The same product with every dtype.
    """
    before, after = _operator_bytes(selected), _operator_bytes(every)
    larger = [
        LargerKernel(operator=name, selected_bytes=count, every_bytes=after[name])
        for name, count in before.items()
        if name in after and count > after[name]
    ]
    larger.sort(key=lambda k: (k.every_bytes - k.selected_bytes, k.operator))
    return DtypeComparison(
        selected_flash_bytes=selected.totals.flash_bytes,
        every_flash_bytes=every.totals.flash_bytes,
        selected_ram_bytes=selected.totals.ram_bytes,
        every_ram_bytes=every.totals.ram_bytes,
        larger=tuple(larger),
    )


def _operator_bytes(report: SizeReport) -> dict[str, int]:
    return {
        operator.name: sum(p.flash_bytes for p in report.parts if operator.name in p.operators)
        for operator in report.operators
    }
