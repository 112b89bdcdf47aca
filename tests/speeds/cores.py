"""Instructions that kernels execute on cores, counted under QEMU.

    python -m tests.speeds.cores [--operators NAME,...] [--write]

counts every call of `calls` on each core and prints a table; `--write` writes it to
docs/kernel-speeds.md and the package's speeds.json. `--operators` builds and counts
some.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.build.left_over import SPEEDS
from orchestrator.measure.elf import ElfFile
from orchestrator.program.reader import read_program
from orchestrator.running.counting import COUNTS_FILE, CountPlan, read_counts
from orchestrator.selection.extract import aggregate, extract
from orchestrator.shell.qemu_plugin import counting_plugin
from tests.opinfo.programs import program_of
from tests.qemu.kernel_firmware import KernelFirmware
from tests.speeds.calls import Timed, timed_calls
from tests.speeds.packed import count_packed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CORES: Final = ("cortex-m4", "cortex-m55")
TOOLCHAIN: Final = "gnu"
COMPILER: Final = "gcc 12"
"""What the counts of the page are of; other compilers give others."""
PAGE: Final = Path(__file__).parents[2] / "docs" / "kernel-speeds.md"
_LIBRARIES: Final = ("cortex_m", "portable", "quantized")
_COUNTED: Final = "orch_carry_out"


def count(cpu: str, calls: Sequence[Timed], folder: Path) -> tuple[str, dict[str, int]]:
    """The compiler, and instructions of each call by operator.

    Args:
        cpu: Core.
        calls: Of different operators.
        folder: An empty one.
    """
    made = [timed.call for timed in calls]
    infos = (
        extract(read_program(program_of(call, dynamic=False)[0], file="call.pte"), model="call")
        for call in made
    )
    firmware = KernelFirmware(
        folder, target=(cpu, TOOLCHAIN), libraries=_LIBRARIES, selection=aggregate(infos)
    )
    elf = ElfFile((folder / "firmware.elf").read_bytes())
    (function,) = (s.value for s in elf.symbols if s.name == _COUNTED)
    plan = CountPlan(executor=(0, 0), tables=(), functions=(function,))
    options = ("-plugin", f"{counting_plugin()},{plan.arguments}")
    answers = firmware.answers(made, options=options)
    failed = {c.operator: a.error for c, a in zip(made, answers, strict=True) if a.error}
    assert not failed, f"calls of tests/speeds/calls.py that return errors: {failed}"
    counts = read_counts((folder / COUNTS_FILE).read_text()).calls_of(0)
    assert len(counts) == len(made)
    names = (call.operator for call in made)
    return firmware.compiler, dict(zip(names, counts, strict=True))


def page(
    calls: Sequence[Timed],
    counts: Mapping[str, Mapping[str, int]],
    packed: Sequence[Mapping[str, float]],
) -> str:
    """The text of the page.

    Args:
        calls: All that were counted.
        counts: Instructions by core and operator.
        packed: Of each core: instructions for each product of packed kernels.
    """
    heads = " | ".join(cpu.removeprefix("cortex-").upper() for cpu in counts)
    rule = f"| --- |{' --: |' * len(counts)}"
    parts = [_HEAD]
    for unit, title in (("item", "Items"), ("product", "Products")):
        parts.append(f"\n## {title}\n\n| | {heads} |\n{rule}\n")
        for timed in sorted(calls, key=lambda t: t.call.operator):
            name = timed.call.operator
            costs = (f"{found[name] / timed.units:.2f}" for found in counts.values())
            if timed.unit == unit:
                parts.append(f"| `{name}` | {' | '.join(costs)} |\n")
    parts.append(f"{_PACKED}| | {heads} |\n{rule}\n")
    for name in sorted({name for found in packed for name in found}):
        costs = (f"{found[name]:.2f}" if name in found else "" for found in packed)
        parts.append(f"| `{name}` | {' | '.join(costs)} |\n")
    return "".join(parts)


def table(
    calls: Sequence[Timed], counts: Mapping[str, Mapping[str, int]]
) -> dict[str, list[str | float]]:
    """The same for the export, by operator: the unit, and costs by core."""
    return {
        timed.call.operator: [
            timed.unit,
            *(round(n[timed.call.operator] / timed.units, 2) for n in counts.values()),
        ]
        for timed in sorted(calls, key=lambda t: t.call.operator)
    }


def read_page(text: str) -> tuple[dict[str, tuple[float, ...]], ...]:
    """Costs by operator, and by packed kernel, in the order of the cores; nan: there is none."""
    parts = text.partition(_PACKED)
    return tuple(
        {
            name.strip(" `"): tuple(float(cost.strip() or "nan") for cost in costs)
            for name, *costs in (line.split("|")[1:-1] for line in lines if "| `" in line)
        }
        for lines in (parts[0].splitlines(), parts[2].splitlines())
    )


_HEAD: Final = f"""\
# Speed of kernels

Instructions that a kernel executes for each item of its largest tensor, or for each
product of a matrix product or convolution. Counted under QEMU, so exact; they are not
cycles. `nox -s speeds` measures them and writes this page, tests hold kernels to it.

{COMPILER}, `optimize = "size"`. Each is one call with contiguous tensors of about 2000
items, of Float or, for int8 kernels, Char; the calls are in `tests/speeds/calls.py`.
Data decide what some of them take: where items lie between the limits, how often the
largest changes.
"""
_PACKED: Final = """
## Packed weights

Of kernels that builds pack weights for, for each product of the calls in
`tests/speeds/packed.py`.

"""


def main() -> int:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--operators", default="", help="NAME,...; default: all")
    parser.add_argument("--write", action="store_true", help=f"to {PAGE.name}")
    options = parser.parse_args()
    names = tuple(filter(None, options.operators.split(",")))
    calls = tuple(t for t in timed_calls() if not names or t.call.operator in names)
    counts, packed = {}, []
    for cpu in CORES:
        with tempfile.TemporaryDirectory() as folder:
            compiler, counts[cpu] = count(cpu, calls, Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            packed.append({} if names else count_packed(cpu, TOOLCHAIN, Path(folder))[1])
        if not compiler.startswith(COMPILER):
            sys.stderr.write(f"the page has counts of {COMPILER}, this is {compiler}\n")
            return 1
    text, made = page(calls, counts, packed), table(calls, counts)
    sys.stdout.write(text)
    if options.write and not names:
        PAGE.write_text(text, encoding="utf-8")
        rows = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in made.items())
        SPEEDS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
