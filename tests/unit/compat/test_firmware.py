"""Facts of a firmware: texts and back."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from orchestrator.compat.firmware import (
    Firmware,
    FirmwareMethod,
    KernelRule,
    firmware_facts,
    port_text,
    read_firmware,
)
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName, parse_schema
from orchestrator.selection.resolution import TableEntry

FIRMWARE = Firmware(
    pointer_bytes=4,
    kernels=(
        TableEntry(
            operator=OperatorName.parse("aten::add.out"),
            key=None,
            function="",
            signature="TTSt",
            dtypes=frozenset({ScalarType.Float, ScalarType.Int}),
        ),
        TableEntry(
            operator=OperatorName.parse("aten::add.out"),
            key=KernelKey.parse("v1/6;0,1|6;0,1|6;0,1|6;0,1"),
            function="",
            signature="TTSt",
            dtypes=frozenset({ScalarType.Float}),
        ),
        TableEntry(
            operator=OperatorName.parse("executorch_prim::add.Scalar"),
            key=None,
            function="",
            signature="SS>S",
            dtypes=frozenset(),
        ),
    ),
    methods=(
        FirmwareMethod(
            model="person.v2",
            method="forward",
            state_bytes=120,
            arena_bytes=(64, 0),
            inputs=tuple(f"{i}" for i in range(11)),
            outputs=("int",),
        ),
        FirmwareMethod(
            model="wake", method="forward", state_bytes=0, arena_bytes=(), inputs=(), outputs=()
        ),
    ),
    delegates=(("Mine", 12), ("Other", 0)),
)


def test_facts_hold_everything() -> None:
    facts = firmware_facts(FIRMWARE)
    assert list(facts) == sorted(facts)
    assert dict(facts)["memory person.v2.forward"] == "120 64 0"
    assert dict(facts)["kernel aten::add.out any"] == "TTSt Int Float"
    assert read_firmware(dict(facts)) == FIRMWARE
    old = replace(FIRMWARE, inline_constants=True)
    assert read_firmware(dict(firmware_facts(old))) == old


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel aten::add.out any": "TTSt Flaot"}, "'Flaot' is no dtype"),
        ({"kernel aten:add any": "TTSt"}, "is not an operator name"),
        ({"kernel aten::add.out v2": "TTSt"}, "is not a kernel key"),
        ({"memory wake.forward": "many"}, "invalid literal"),
        ({"memory wake.forward": ""}, "not enough values"),
        ({"pointer": "bytes"}, "invalid literal"),
    ],
)
def test_damaged_facts_are_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_firmware(dict(firmware_facts(FIRMWARE)) | change)


def test_the_size_of_a_pointer_is_needed() -> None:
    with pytest.raises(ValueError, match="pointer is missing"):
        read_firmware({})


def test_ports() -> None:
    assert port_text("int") == "int"
    tensor = port_text("tensor", ScalarType.Half, (2, 3), (1, 0), is_dynamic=True)
    assert tensor == "Half at most [2, 3] in order [1, 0]"


SCHEMA = "ours::filter.out(Tensor x, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)"
WITH_SCRATCH = replace(
    FIRMWARE,
    isa="dsp",
    rules=(KernelRule(schema=parse_schema(SCHEMA), scratch=(("scratch", "4 * x.numel"),)),),
)


def test_scratch_sizes_survive() -> None:
    facts = dict(firmware_facts(WITH_SCRATCH))
    assert facts["scratch ours::filter.out scratch"] == "dsp 4 * x.numel"
    assert read_firmware(facts) == WITH_SCRATCH


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema ours::filter.out": None}, "the schema of ours::filter.out is missing"),
        ({"schema ours::filter.out": "no"}, '"no" is not an op schema "name'),
        ({"scratch ours::filter.out scratch": "dsp 4 *"}, "it is not an expression"),
        ({"scratch ours::filter.out x": "dsp 4"}, "x is no scratch argument of ours"),
        ({"scratch ours::filter.out x": "mve 4"}, "for several ISAs"),
        ({"scratch ours::filter.out x": "neon 4"}, "'neon' is not a valid Backend"),
        (
            {"schema ours::filter.out": SCHEMA.replace("ours", "mine")},
            "the schema of ours::filter.out is that of mine::filter.out",
        ),
    ],
)
def test_damaged_scratch_sizes_are_refused(changes: dict[str, str | None], message: str) -> None:
    facts = {**dict(firmware_facts(WITH_SCRATCH)), **changes}
    with pytest.raises(ValueError, match=re.escape(message)):
        read_firmware({k: v for k, v in facts.items() if v is not None})


def test_conditions_survive() -> None:
    rule = KernelRule(
        schema=parse_schema(SCHEMA), requires=("x.rank == 4", "resizes(out, x.sizes)")
    )
    firmware = replace(FIRMWARE, rules=(rule,))
    facts = dict(firmware_facts(firmware))
    assert facts["requires ours::filter.out"] == "x.rank == 4; resizes(out, x.sizes)"
    assert read_firmware(facts) == firmware
    facts["requires ours::filter.out"] = "x.rank == 4; y"
    with pytest.raises(ValueError, match="the operator has no argument y"):
        read_firmware(facts)
