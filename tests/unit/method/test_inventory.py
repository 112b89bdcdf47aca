"""The inventory lists each kernel and loop of the sources, and nothing else."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Final

import pytest

from orchestrator.memory.estimate import CODE_SIZES
from orchestrator.method.passes.inventory import LOOPS, OTHERS, PACKED, Row
from orchestrator.method.passes.packing.kernels import FAMILIES, KERNELS, UNPREPARED
from tests.unit.method.packed_reader import KERNEL_SOURCES

ISAS: Final = ("scalar", "dsp", "mve")
ROWS: Final = (*PACKED, *OTHERS.values())
TEMPLATES: Final = {"run_limited", "run_packed"}
"""Functions that have kernels as arguments."""
_CONDITION: Final = re.compile(r"\s*#(if|elif|else|endif)\b *([^/\n]*)")
_KERNEL: Final = re.compile(
    r"^(?<!>\n)(?:ORCH_HOT )?void (\w+)\(const PreparedCall& \w+\) \{", re.MULTILINE
)
_MACRO: Final = re.compile(r"#define (ORCH_\w+)\(([^)]*)\)((?:.*\\\n)*.*)")
_COMMA: Final = re.compile(r',\s*(?=(?:[^"]*"[^"]*")*[^"]*$)')
_UNNAMED: Final = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.MULTILINE | re.DOTALL)
_LOOP: Final = re.compile(
    r'ORCH_(?:FUNCTION|WHOLE)\("(orch_\w+)"|^"? +(orch_\w+) (orch_\w+)\b', re.MULTILINE
)
NUMBERS: Final = {
    *("CMSIS-NN's integers", "right where CMSIS-NN is not", "ExecuTorch's integers"),
    "PyTorch's rounding",
}


def preprocessed(text: str, isa: str, *, speed: bool) -> str:
    """What of a source is compiled."""
    names = {f"ORCH_ISA_{name.upper()}": ISAS.index(name) for name in ISAS}
    names |= {"ORCH_ISA": ISAS.index(isa), "ORCH_FAVOUR_SPEED": int(speed)}
    names |= {"ORCH_UNALIGNED": isa != "scalar", "ORCH_FLOAT_VECTORS": isa == "mve"}
    kept, stack = [], [(True, True)]  # whether lines are kept, and whether a branch was taken
    for line in text.splitlines():
        match = _CONDITION.match(line)
        if match is None:
            if all(is_kept for is_kept, _ in stack):
                kept.append(line)
            continue
        kind, condition = match[1], match[2].replace("&&", " and ").replace("||", " or ")
        _, taken = stack.pop() if kind != "if" else (False, False)
        if kind != "endif":
            holds = kind == "else" or eval(re.sub(r"!(?!=)", " not ", condition), {}, names)  # noqa: S307
            stack.append((bool(holds) and not taken, taken or bool(holds)))
    assert len(stack) == 1
    return "\n".join(kept)


def expanded(text: str, *headers: str) -> str:
    """With the macros written out that make kernels, and loops over several vectors."""
    macros = {
        name: (of.split(", "), body) for name, of, body in _MACRO.findall("".join(headers) + text)
    }
    text = _MACRO.sub("", text)
    call = re.compile(rf"\b({'|'.join(macros)})\(([^()]*)\)")

    def made(match: re.Match[str]) -> str:
        parameters, body = macros[match[1]]
        body = re.sub(r"^ +| *\\$", "", body, flags=re.MULTILINE)
        for name, given in zip(parameters, _COMMA.split(match[2]), strict=True):
            body = re.sub(rf"(?<!#)#{name}\b", f'"{given}"', body)
            body = re.sub(rf"(##)?\b{name}\b(##)?", given, body)
        return "\n" + re.sub(r'"\s*"', "", body)

    while (more := call.sub(made, text)) != text:
        text = more
    return text


def defined(isa: str, *, speed: bool) -> tuple[set[str], set[str]]:
    """Kernels for prepared calls, and functions in assembly."""
    kernels, loops = set[str](), set[str]()
    headers = [
        preprocessed((KERNEL_SOURCES / name).read_text(), isa, speed=speed)
        for name in ("packed_limits.h", "packed_loops_mve.h")
    ]
    for path in sorted(KERNEL_SOURCES.glob("*.cpp")):
        text = expanded(preprocessed(path.read_text(), isa, speed=speed), *headers)
        begin = {"orch_begin", *re.findall(r"\.macro (\w+) name\b", text)}
        loops |= {whole or of for whole, by, of in _LOOP.findall(text) if whole or by in begin}
        kernels |= {*_KERNEL.findall(_UNNAMED.sub("", text))}
    return kernels, loops


def names(rows: tuple[Row, ...], isa: str, whens: set[str]) -> set[str]:
    """Those of rows that products for an instruction set may have."""
    return {row.name for row in rows if isa in row.isa.split() and row.when in whens}


def functions(isa: str, whens: set[str]) -> set[str]:
    """Names of kernels, and of those of packed ones for outputs with limits."""
    found = names(ROWS, isa, whens)
    limited = {k.function.rpartition("::")[2] for k in KERNELS.values() if k.row.name in found}
    return found | limited


@pytest.mark.parametrize(("isa", "speed"), [*product(ISAS, (False, True))])
def test_sources_have_the_kernels_and_loops(isa: str, speed: bool) -> None:  # noqa: FBT001
    kernels, loops = defined(isa, speed=speed)
    whens = {"", "scratch", "speed" if speed else "size"}
    # The loop for three lines is slower than others, but where speed counts.
    lines = set() if speed or isa != "mve" else {"packed_lines", "limited_packed_lines"}
    assert kernels == functions(isa, whens) | lines
    assert loops == names(LOOPS, isa, whens)


def test_lines_are_complete() -> None:
    known = {(row.name, isa): row for row in ROWS for isa in row.isa.split()}
    families = {family.__name__ for family in FAMILIES}
    assert {row.of for row in PACKED} == families
    for row in known.values():
        assert row.op
        assert row.takes
        assert row.numbers in NUMBERS
        assert row.when in {"", "speed", "scratch"}
        for name in row.instead_of.split():
            replaced = known[name, row.isa]
            assert (replaced.of, replaced.when, row.is_whole) == (row.of, row.when, False)
    for row in PACKED:
        assert re.fullmatch(r"[1-4]x[1248]x\d+", row.tile)
        assert row.weights == ("int4" if row.of.startswith("Int4") else "int8")
    for loop in LOOPS:
        assert loop.of
        assert {(name, loop.isa) for name in loop.of.split()} <= known.keys()
    called = {name for loop in LOOPS for name in loop.of.split()}
    in_c = {row.name for row in PACKED} - called
    assert in_c == {"int4_packed_convolution", "int4_packed_matrix"}


def test_families_begin_with_a_kernel_for_any_call() -> None:
    for family in FAMILIES:
        first, *_ = family.kernels()
        assert first.is_whole
        assert first.taps == min(row.taps for row in family.kernels())
    assert {k.function: k for k in KERNELS.values()} == dict(KERNELS)
    assert all(kernel.row.is_whole for kernel in UNPREPARED.values())


@pytest.mark.parametrize(
    ("column", "isa"),
    [
        *(("cortex-m0plus", "scalar"), ("rv32imac", "scalar")),
        *(("cortex-m4", "dsp"), ("cortex-m55", "mve")),
    ],
)
def test_sizes_of_code_are_known_of_each(column: str, isa: str) -> None:
    """`python -m benchmarks.code_sizes` measures those that were added."""
    for name, sizes in json.loads(CODE_SIZES.read_text()).items():
        if name.split()[0] == column:
            measured = {
                function.rpartition("::")[2]
                for function, *_ in sizes["functions"]
                if function.startswith("orch::cortex_m::") and not function.endswith("_out")
            }
            assert measured - TEMPLATES == functions(isa, {"", "scratch", "speed"}), name
