"""Keys change with everything that decides about an object, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.emit.compile import CompileUnit, object_keys
from orchestrator.targets.cores import Toolchain

ZIG = Toolchain(
    name="zig",
    version="zig 1",
    compiler=("zig", "c++"),
    linker=("zig", "c++"),
    archiver=("zig", "ar"),
    programs=(("zig", "1" * 64),),
)
GCC = replace(ZIG, name="gnu", version="gcc 1")
UNIT = CompileUnit("src/k/a.cpp", "obj/k/a.cpp.o", ("-O2", "-Igen/s", "-Isrc"))
FILES = {
    "src/k/a.cpp": b'#include "b.h"\n#include <c.h>\n#include <stdint.h>\n',
    "src/k/b.h": b'#if X\n#  include "d.h"\n#endif\n',
    "src/c.h": b"",
    "src/d.h": b"",
    "src/b.h": b"another of the same name, further away",
    "gen/s/other.h": b"",
}


def _key(
    files: dict[str, bytes] = FILES, unit: CompileUnit = UNIT, toolchain: Toolchain = ZIG
) -> str | None:
    return object_keys([unit], files, toolchain=toolchain).get(unit.object)


@pytest.mark.parametrize("name", ["src/k/a.cpp", "src/k/b.h", "src/c.h", "src/d.h"])
def test_every_file_that_may_be_included_counts(name: str) -> None:
    assert _key({**FILES, name: FILES[name] + b"\n// more"}) != _key()


@pytest.mark.parametrize("name", ["src/b.h", "gen/s/other.h", "src/new.h"])
def test_no_other_file_does(name: str) -> None:
    assert _key({**FILES, name: b"changed"}) == _key()


def test_a_header_that_is_found_earlier_counts() -> None:
    assert _key({**FILES, "gen/s/c.h": b""}) != _key()


@pytest.mark.parametrize("toolchain", [ZIG, GCC])
def test_compiler_and_flags_count(toolchain: Toolchain) -> None:
    keys = {
        _key(toolchain=toolchain),
        _key(toolchain=replace(toolchain, version="zig 2")),
        _key(toolchain=replace(toolchain, programs=(("zig", "2" * 64),))),
        _key(toolchain=toolchain, unit=replace(UNIT, flags=(*UNIT.flags, "-DX=1"))),
        _key(toolchain=toolchain, unit=replace(UNIT, object="obj/elsewhere.o")),
    }
    assert None not in keys
    assert len(keys) == 5


def test_headers_that_flags_include_count() -> None:
    unit = replace(UNIT, flags=(*UNIT.flags, "-include", "src/d.h"))
    files = {**FILES, "src/k/b.h": b""}
    assert _key(files, unit) != _key({**files, "src/d.h": b"new"}, unit)


@pytest.mark.parametrize(
    "text",
    [
        b"#include HEADER\n",
        b"#include_next <c.h>\n",
        b'asm(".incbin \\"file\\"");\n',
        b"#if __has_include(<c.h>)\n#endif\n",
        b"const char* when = __DATE__;\n",
    ],
)
def test_what_is_not_known_has_no_key(text: bytes) -> None:
    assert _key({**FILES, "src/k/b.h": text}) is None


def test_headers_of_the_system_have_no_key_with_gcc() -> None:
    files = {**FILES, "src/k/b.h": b"#include <stdio.h>\n"}
    assert _key(files, toolchain=GCC) is None
    # zig brings its own.
    assert _key(files) is not None


def test_sources_of_one_product_have_none() -> None:
    for unit in (
        replace(UNIT, source="gen/src/api.cpp"),
        replace(UNIT, source="gen/src/models.S"),
        replace(UNIT, inputs=("models/a.pte",)),
    ):
        files = {**FILES, unit.source: b""}
        assert _key(files, unit) is None
