"""Sources without code for an instruction set are known without a compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.emit.compile import is_empty
from orchestrator.emit.compile.units import _LEVELS

KERNELS = Path(__file__).parents[3] / "kernels"
HEAD = b'// A comment.\n#include "isa.h"\n\n'


@pytest.mark.parametrize(
    ("condition", "empty_on"),
    [
        (b"ORCH_ISA == ORCH_ISA_MVE", {0, 1}),
        (b"ORCH_ISA != ORCH_ISA_MVE  // which has another", {2}),
        (b"ORCH_ISA == ORCH_ISA_DSP || ORCH_ISA == ORCH_ISA_MVE", {0}),
        (b"ORCH_ISA > ORCH_ISA_DSP", set()),
        (b"ORCH_FLOAT_VECTORS", set()),
    ],
)
def test_the_condition_decides(condition: bytes, empty_on: set[int]) -> None:
    code = b"#if A\nint a;\n#else\nint b;\n#endif\n"
    source = HEAD + b"#if " + condition + b"\n" + code + b"#endif\n"
    assert {n for n in range(3) if is_empty(source, n)} == empty_on


@pytest.mark.parametrize(
    "code",
    [
        b"#if ORCH_ISA == ORCH_ISA_MVE\nint a;\n#endif\nint b;\n",
        b"#if ORCH_ISA == ORCH_ISA_MVE\nint a;\n#else\nint b;\n#endif\n",
        b"#include <string.h>\n#if ORCH_ISA == ORCH_ISA_MVE\nint a;\n#endif\n",
        b"int a;\n#if ORCH_ISA == ORCH_ISA_MVE\nint b;\n#endif\n",
        b"int a;\n",
        b"",
    ],
)
def test_code_beside_the_condition_counts(code: bytes) -> None:
    assert not any(is_empty(HEAD + code, level) for level in range(3))


def test_instruction_sets_have_the_numbers_of_the_kernels() -> None:
    text = (KERNELS / "util" / "isa.h").read_bytes()
    for name, level in _LEVELS.items():
        assert b"#define ORCH_ISA_%b %d\n" % (name, level) in text


def test_kernels_for_one_instruction_set_are_known() -> None:
    found = {
        path.name: {n for n in range(3) if is_empty(path.read_bytes(), n)}
        for path in (KERNELS / "cortex_m").glob("*.cpp")
    }
    assert found["convolve.cpp"] == {2}
    assert found["convolve_mve.cpp"] == {0, 1}
    assert found["op_packed_depthwise.cpp"] == {0}
    assert found["op_quantized_mul.cpp"] == set()
    assert len([name for name, levels in found.items() if levels]) > 10
