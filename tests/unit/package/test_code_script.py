"""The piece of linker script that takes the functions of a package."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from orchestrator.package.product import api_names, code_script, user_files
from orchestrator.package.sources import Unit

TEXT: Final = code_script(
    "head", "kws", ".itcm", api=["kws_run", "orch_status_text"], files=["vendor"]
)
PATTERNS: Final = [
    pattern for line in TEXT.splitlines() if line.startswith("*(") for pattern in line[2:-1].split()
]


def taken(section: str) -> bool:
    """Whether a linker takes a section of any file; globs are those of the shell."""
    return any(fnmatchcase(section, pattern) for pattern in PATTERNS)


def test_functions_of_the_product_and_parts_of_them_are_taken() -> None:
    assert taken(".text._ZN8kws_orch8portable10square_outERKNS_4ArgsE")
    assert taken(".text.unlikely._ZN8kws_orch8portable3addEv.cold")
    assert taken(".text._ZZN8kws_orch3mapEvENKUlT_E_clIfEEDaS0_.constprop.0")
    assert taken(".text.kws_orch_packed_row")
    assert taken(".text.hot.kws_orch_random_next")
    assert taken(".text.kws_run")
    assert taken(".text.unlikely.kws_run")
    assert taken(".text.kws_run.part.0")
    assert taken(".text.orch_status_text")


def test_functions_of_others_are_not() -> None:
    assert not taken(".text")
    assert not taken(".text.kws_task")
    assert not taken(".text.kws_runner")
    assert not taken(".text.my_kws_run")
    assert not taken(".text._ZN12big_kws_orch3addEv")
    assert not taken(".text._ZN4orch3addEv")
    assert not taken(".text.memcpy")


def test_it_is_one_comment_and_lines_for_an_output_section() -> None:
    comment, _, lines = TEXT.partition("*/\n/*")
    assert comment == "/* head "
    text, _, body = lines.partition("*/\n")
    assert ".itcm" in text
    assert body.splitlines()[-1] == "*vendor.*(.text .text.*)"


def test_sources_of_users_are_named_by_file() -> None:
    paths = ("kernels/mine/a.c", "kernels/mine_too/b.c", "delegates/npu/x/c.d.cpp")
    units = [Unit(path=f"src/{path}", defines=(), folders=(), forced=()) for path in paths]
    assert user_files(units, ["mine", "npu"]) == {"a", "c.d"}


def test_symbols_of_the_api() -> None:
    symbols = ["kws_run", "orch_status_text", "_ZN4orch1aEv.kws", "orch_row.kws"]
    assert api_names([*symbols, "_ZN5other1aEv"]) == {"kws_run", "orch_status_text"}
