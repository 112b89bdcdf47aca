"""selected_op_variants.h, ours and ExecuTorch's, compiled: they give the same answers.

ExecuTorch's headers are those of the corpus, and of lists of which we answer otherwise
by choice: docs/executorch-compatibility.md has these differences, this file no other.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from orchestrator.core.dtype import ScalarType
from tests.conftest import CASES, CORPUS
from tests.tools import need_tool

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

LISTS = CORPUS.parent / "op_variants"
LIST_NAMES = tuple(sorted(path.stem for path in LISTS.glob("*.yaml")))

UNKNOWN = (
    *("", "add", "add.ou", "add.out2", "aten::", "aten::add.out", "aten::mm.out"),
    *("no_such.out", "my::no_such.out", "executorch_prim::no_such.int"),
)
"""No operator of any list: names in part, and aten operators with their namespace."""

# What the files that include these headers have of ExecuTorch.
STUB = (
    "#include <cstdint>\n#include <cstdio>\n#include <string_view>\n\n"
    "namespace executorch::aten {\nenum class ScalarType : int8_t {\n"
    + "".join(f"  {dtype.name} = {dtype.value},\n" for dtype in ScalarType)
    + "};\n}\n"
)

Answers = dict[tuple[str, str], dict[str, frozenset[ScalarType]]]
"""By (list, "ours" or "theirs") and operator: dtypes that are to be included."""


def _bare(path: Path) -> str:
    """A header's text, to be put into a namespace."""
    first, _, rest = path.read_text().partition("\n")
    assert first == "#pragma once"
    return rest


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Every header by list and maker; ours of the corpus are made from the models."""
    folder = tmp_path_factory.mktemp("variants")
    found = {}
    for case in CASES:
        oplist = folder / f"{case}.yaml"
        model = str(CORPUS / case / "model.pte")
        assert run(["plumbing", "oplist", "--model", model, "--output", str(oplist)]) == 0
        found[case, "theirs"] = _bare(CORPUS / case / "selected_op_variants.h")
    for name in LIST_NAMES:
        (folder / f"{name}.yaml").write_bytes((LISTS / f"{name}.yaml").read_bytes())
        found[name, "theirs"] = _bare(LISTS / f"{name}.h")
    for name in (*CASES, *LIST_NAMES):
        out = folder / name
        oplist = folder / f"{name}.yaml"
        assert run(["plumbing", "headers", "--oplist", str(oplist), "--output-dir", str(out)]) == 0
        found[name, "ours"] = _bare(out / "selected_op_variants.h")
    return found


def _operators(headers: dict[tuple[str, str], str]) -> list[str]:
    named = {name for text in headers.values() for name in re.findall(r'\("([^"]+)"\)', text)}
    assert not named & set(UNKNOWN)
    return sorted(named | set(UNKNOWN))


@pytest.fixture(scope="module")
def answers(
    headers: dict[tuple[str, str], str], tmp_path_factory: pytest.TempPathFactory
) -> Answers:
    """What each header says of every operator of all lists, and of unknown ones."""
    compiler = need_tool("g++", "clang++", "c++")
    folder = tmp_path_factory.mktemp("program")
    operators = _operators(headers)
    parts = [STUB, "#define Uint64 UInt64  // their spelling, which no ExecuTorch has\n"]
    parts += [
        f"namespace list_{index} {{\n{text}}}\n" for index, text in enumerate(headers.values())
    ]
    parts.append(
        "using Include = bool (*)(const char*, executorch::aten::ScalarType);\n"
        "constexpr Include kLists[] = {\n"
        + "".join(f"  list_{i}::should_include_kernel_dtype,\n" for i in range(len(headers)))
        + "};\nconstexpr const char* kOperators[] = {\n"
        + "".join(f'  "{name}",\n' for name in operators)
        + "};\n"
        "int main() {\n"
        "  for (Include include : kLists) {\n"
        "    for (const char* name : kOperators) {\n"
        "      for (int dtype = 0; dtype < "
        f"{len(ScalarType)}; ++dtype) {{\n"
        "        const auto type = static_cast<executorch::aten::ScalarType>(dtype);\n"
        "        std::putchar(include(name, type) ? '1' : '0');\n"
        "      }\n    }\n    std::putchar('\\n');\n  }\n}\n"
    )
    (folder / "variants.cpp").write_text("\n".join(parts))
    flags = ("-std=c++17", "-Wall", "-Werror")
    subprocess.run([compiler, *flags, "variants.cpp", "-o", "variants"], cwd=folder, check=True)
    done = subprocess.run([folder / "variants"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    width = len(ScalarType)
    assert {len(line) for line in lines} == {width * len(operators)}
    return {
        key: {
            name: frozenset(dtype for dtype in ScalarType if line[width * index + dtype] == "1")
            for index, name in enumerate(operators)
        }
        for key, line in zip(headers, lines, strict=True)
    }


EVERY = frozenset(ScalarType)
NONE: frozenset[ScalarType] = frozenset()
FLOAT = frozenset([ScalarType.Float])


def _differences(
    answers: Answers, name: str
) -> dict[str, tuple[frozenset[ScalarType], frozenset[ScalarType]]]:
    """By operator: dtypes of ours and of theirs, where these are not the same."""
    ours, theirs = answers[name, "ours"], answers[name, "theirs"]
    return {o: (ours[o], theirs[o]) for o in ours if ours[o] != theirs[o]}


@pytest.mark.parametrize("case", CASES)
def test_the_corpus_gives_the_same_answers(answers: Answers, case: str) -> None:
    assert _differences(answers, case) == {}
    assert not any(answers[case, "ours"][name] for name in UNKNOWN)


def test_answers_are_those_of_a_known_program(answers: Answers) -> None:
    said = {k: v for k, v in answers["add_mul", "ours"].items() if v}
    assert said == {"add.out": FLOAT, "mm.out": FLOAT}
    # All programs together need several dtypes, so that telling them apart was needed.
    used = {d for case in CASES for d in set().union(*answers[case, "ours"].values())}
    assert len(used) > 5


# Differences by choice ----------------------------------------------------------


def test_the_lists_with_differences_are_all_looked_at() -> None:
    assert set(LIST_NAMES) == {
        *("default_first", "default_last", "every_operator", "nothing"),
        *("two_keys", "uint64"),
    }


@pytest.mark.parametrize("name", ["default_first", "two_keys"])
def test_lists_without_a_difference(answers: Answers, name: str) -> None:
    assert _differences(answers, name) == {}


def test_their_name_of_uint64_is_no_dtype(
    answers: Answers, headers: dict[tuple[str, str], str]
) -> None:
    misspelt = {key for key, text in headers.items() if "Uint64" in text}
    assert misspelt == {("uint64", "theirs")}
    assert _differences(answers, "uint64") == {}
    assert answers["uint64", "ours"]["p::f.out"] == {ScalarType.UInt64}


def test_nothing_selected(answers: Answers) -> None:
    every_name = answers["nothing", "ours"]
    assert _differences(answers, "nothing") == dict.fromkeys(every_name, (NONE, EVERY))


def test_every_operator_selected(answers: Answers) -> None:
    said = answers["every_operator", "ours"]
    assert set(said.values()) == {EVERY}
    theirs = {name: FLOAT if name == "add.out" else NONE for name in said}
    assert answers["every_operator", "theirs"] == theirs


def test_default_after_another_key(answers: Answers) -> None:
    assert _differences(answers, "default_last") == {"add.out": (EVERY, FLOAT)}
