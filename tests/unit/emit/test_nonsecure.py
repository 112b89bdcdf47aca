"""Entry functions of the secure side: what they check, copy and leave out."""

from __future__ import annotations

from orchestrator.emit.generate.nonsecure import nonsecure_files
from orchestrator.emit.generate.ports import api_methods
from orchestrator.program.reader import read_program
from tests import list_program
from tests.list_program import call, plan, tensor, value

ADD = ["aten::add.out"]


def _files(*plans: dict[str, object]) -> tuple[str, str]:
    program = read_program(list_program.program(*plans), file="m.pte")
    header, source = nonsecure_files("p", "Head.", api_methods("p", {"m": program}))
    assert header.path == "nonsecure/p_nonsecure.h"
    assert source.path == "nonsecure/p_nonsecure.c"
    return header.text, source.text


def test_arguments_of_each_kind() -> None:
    """Numbers are in the struct; arrays are checked, and sizes copied."""
    values = [tensor([2, 3], 0, dynamic=True), value("Int", int_val=1)]
    values += [tensor([2, 3], 32), value("Double", double_val=0.5)]
    header, source = _files(plan("forward", values, ([0, 1], [2, 3]), [call(0, 0, 2, 1, 2)], ADD))
    assert (
        "struct p_m_forward_arguments {\n"
        "  const float* input0;\n"
        "  const int32_t* input0_sizes;\n"
        "  int64_t input1;\n"
        "  float* output0;\n"
        "  double* output1;\n"
        "};\n"
    ) in header
    assert (
        "  const int32_t* input0_sizes = from->input0_sizes;\n"
        "  int64_t input1 = from->input1;\n"
        "  float* output0 = from->output0;\n"
        "  double* output1 = from->output1;\n"
        "  if (!may_read(input0, 6 * sizeof *input0) ||\n"
        "      !may_read(input0_sizes, sizeof(int32_t) * 2) ||\n"
        "      !may_write(output0, 6 * sizeof *output0) ||\n"
        "      !may_write(output1, sizeof *output1)) return ORCH_INVALID_ARGUMENT;\n"
        "  int32_t own_input0_sizes[2];\n"
        "  memcpy(own_input0_sizes, input0_sizes, sizeof own_input0_sizes);\n"
        "  double own_output1;\n"
    ) in source
    assert ("p_m_forward(input0, own_input0_sizes, input1, output0, &own_output1);\n") in source


def test_a_number_alone_needs_no_check() -> None:
    values = [value("Int", int_val=1), tensor([2], 0)]
    _, source = _files(plan("forward", values, ([0], []), [call(0, 1, 1, 0, 1)], ADD))
    assert "  int64_t input0 = from->input0;\n  if (__atomic_test_and_set" in source


def test_what_has_no_entry_function() -> None:
    header, source = _files(list_program.list_plan(), plan("none", [], ([], []), []))
    assert header.count("/* No entry function: m.") == 2
    assert "_entry" not in header + source
