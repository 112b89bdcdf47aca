"""Every kernel has what it needs inside under the narrowest selections."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cpp.support import closure
from tests.cpp.support.closure import ROOT, Library
from tests.unit.method.recorded_calls import reference_file

if TYPE_CHECKING:
    from pathlib import Path

MEAN = closure.library(ROOT / "tests" / "cpp" / "closure" / "mean")
DECLARED = "  closure: [Int]\n"
LIBRARIES = closure.libraries()


def _mean(name: str, instead: str) -> Library:
    """The library that has a closure to declare, with another declaration."""
    assert DECLARED in MEAN.text
    text = MEAN.text.replace(DECLARED, instead)
    return Library(name=name, folder=MEAN.folder, text=text)


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    wrong = (_mean("missing", ""), _mean("wrong", "  closure: [Long]\n"))
    return closure.build((MEAN, *wrong))


def _run(program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, "--no-version"],
        env={"ORCH_REFERENCE": str(reference_file())},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.toolchain
def test_kernels_have_what_they_need_inside() -> None:
    programs = closure.build((*LIBRARIES, MEAN))
    failed = {}
    for name, program in programs.items():
        done = _run(program)
        if done.returncode != 0:
            failed[name] = done.stdout[-2000:] + done.stderr
    assert failed == {}
    for library in LIBRARIES:
        assert any(name.startswith(f"{library.name}-") for name in programs)


@pytest.mark.toolchain
@pytest.mark.parametrize("declaration", ["missing", "wrong"])
def test_a_closure_that_is_not_declared_is_found(
    programs: dict[str, Path], declaration: str
) -> None:
    done = _run(programs[f"{declaration}-Char"])
    assert done.returncode == 1
    assert "narrow::mean.out" in done.stdout
    assert "DtypeNotSelected ==" in done.stdout
    # Floats are summed as such.
    assert _run(programs[f"{declaration}-Float"]).returncode == 0


def test_every_kernel_is_asked_for_every_dtype_that_decides() -> None:
    for library in LIBRARIES:
        for _, kernels in library.catalog.libraries:
            for kernel in kernels:
                taken = dict(kernel.dtypes)
                for name in kernel.dtype_arguments:
                    for dtype in taken[name]:
                        single = frozenset({dtype})
                        assert closure.asked(kernel, single) == single
                        call = dict(closure.narrowest_call(kernel, dtype).tensors)
                        assert dtype in {meta.dtype for meta in call.values()}
