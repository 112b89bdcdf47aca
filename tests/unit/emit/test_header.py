"""The public header: names that it may have, and those it refuses."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.emit.generate.names import cpp_name, cpp_namespace
from orchestrator.emit.generate.ports import api_methods
from orchestrator.errors import Diagnostic, ModelError
from orchestrator.targets.c_names import HEADERS, LIBRARIES, is_c_function, is_c_global, is_c_macro
from tests.unit.products import program_of

if TYPE_CHECKING:
    from orchestrator.program.program import Program


def _renamed(program: Program, name: str) -> Program:
    (method,) = program.methods
    return replace(program, methods=(replace(method, name=name),))


def test_no_two_names_become_one() -> None:
    words = ["float", "int", "errno", "NULL", "__x", "_X", "orch_status", "plain", "_"]
    names = [word + "_" * count for word in words for count in range(4)]
    assert len({cpp_name(name) for name in names}) == len(names)
    assert cpp_name("plain") == "plain"
    assert cpp_namespace("keyword-spotter") == "keyword_spotter"


def test_a_function_of_the_c_library_is_not_defined_again() -> None:
    programs = {"quick": _renamed(program_of("add_mul"), "exit")}
    with pytest.raises(ModelError) as caught:
        api_methods("at", programs)
    assert caught.value.diagnostics == (
        Diagnostic(
            code="name-clash",
            message="the generated API would have at_quick_exit, which C libraries have",
            notes=(("found", 'model "quick", method exit'),),
            hint="give the product or the model another name in the profile",
        ),
    )


def test_two_methods_of_one_model_are_told_to_be_exported_anew() -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    both = (method, replace(method, name="forward_run"))
    with pytest.raises(ModelError) as caught:
        api_methods("p", {"m": replace(program, methods=both)})
    assert caught.value.diagnostics[0].hint == (
        "export the model with another name for one of its methods"
    )


def test_constants_of_the_stack_are_those_of_one_method() -> None:
    """P_M_F_CALL_RUN_STACK_BYTES: of the function f_run, and of a method f_call."""
    program = program_of("add_mul")
    (method,) = program.methods
    both = tuple(replace(method, name=name) for name in ("f", "f_call"))
    with pytest.raises(ModelError, match="two meanings of P_M_F_CALL"):
        api_methods("p", {"m": replace(program, methods=both)})


def test_tables_of_names() -> None:
    assert is_c_macro("errno")
    assert not is_c_macro("time")
    assert is_c_function("time")
    assert not is_c_function("keywords")
    for name in ("time", "size_t", "sinf", "strtok_r", "pthread_create", "stat64"):
        assert is_c_global(name), name
    assert not is_c_global("doorbell")
    assert {"string", "stdint", "math"} <= HEADERS
    assert {"c", "m"} <= LIBRARIES


def test_bazel_gets_every_header_that_the_public_header_may_include() -> None:
    root = Path(__file__).parents[3]
    include = re.compile(r'#include "orch/(\w+)\.h"')
    template = root / "orchestrator" / "emit" / "generate" / "templates" / "api.h.jinja"
    wanted = set(include.findall(template.read_text()))
    waiting = [*wanted]
    while waiting:
        header = root / "runtime" / "include" / "orch" / f"{waiting.pop()}.h"
        new = {*include.findall(header.read_text())} - wanted
        wanted |= new
        waiting += new
    macros = (root / "bazel" / "defs.bzl").read_text()
    (listed,) = re.findall(r"^_HEADERS = (\[.*\])$", macros, re.MULTILINE)
    assert ast.literal_eval(listed) == sorted(wanted)
