"""What functions in assembly have to keep to, so that any compiler's flags suit them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("kernels", "runtime")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".h", ".cpp", ".S"}
)
DECIDES = ROOT / "runtime" / "include" / "orch" / "favour.h"


def test_macros_end_with_their_source() -> None:
    """With -flto all assembly of a program is one text."""
    for path in SOURCES:
        text = path.read_text()
        begun, ended = (sorted(re.findall(rf"\.{w} (\w+)", text)) for w in ("macro", "purgem"))
        assert begun == ended, path


def test_the_build_decides_about_size() -> None:
    """The compiler's macro would decide a second time, and otherwise."""
    found = {path for path in SOURCES if "__OPTIMIZE_SIZE__" in path.read_text()}
    assert found == {DECIDES}


def test_inline_assembly_leaves_registers() -> None:
    """It names neither the frame pointer nor the base of static data.

    Functions in assembly, which are raw strings, have all registers.
    """
    for path in (path for path in SOURCES if "platform" not in path.parts):
        text = re.sub(r'R"\(.*?\)"', "", path.read_text(), flags=re.DOTALL)
        assert re.findall(r'"r[79]"', text) == [], path


def test_functions_of_kernels_begin_alike() -> None:
    """With a section, an alignment and unwinding information."""
    found = {path.name for path in SOURCES if "%function" in path.read_text()}
    assert found == {"assembly.h", "startup.cpp"}
