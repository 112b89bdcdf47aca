"""New profiles: every one of them can be read, and says what was chosen."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.profile.load import load_profile
from orchestrator.profile.lowering import LOWERINGS
from orchestrator.profile.starter import (
    NewModel,
    NewProfile,
    model_names,
    product_name,
    profile_text,
)
from orchestrator.targets.boards import boards_of
from orchestrator.targets.cores import BOARDS, CPUS

if TYPE_CHECKING:
    from orchestrator.profile.tables import Profile

TARGETS = [
    (cpu.name, board, toolchain)
    for cpu in CPUS.values()
    for board, toolchain in product(boards_of(cpu.name, BOARDS) or ("",), cpu.toolchains)
]


def _loaded(new: NewProfile) -> tuple[str, Profile]:
    text = profile_text(new)
    profile = load_profile(
        Path("p.toml"),
        text_of=lambda _: text,
        is_file=lambda _: True,
        known_libraries=("cortex_m", "portable", "quantized"),
    )
    return text, profile


@pytest.mark.parametrize(("cpu", "board", "toolchain"), TARGETS)
@pytest.mark.parametrize("load", ["pte", "prelinked"])
def test_a_new_profile_says_what_was_chosen(
    cpu: str, board: str, toolchain: str, load: str
) -> None:
    model = NewModel(name="m", path='../"odd" ü\x7f/m.pte')
    new = NewProfile(
        name="p",
        cpu=cpu,
        board=board,
        toolchain=toolchain,
        load=load,
        models=(model,),
        ram="64 KiB",
    )
    text, profile = _loaded(new)
    assert profile.name == "p"
    target = profile.target
    assert (target.cpu, target.board or "") == (cpu, board)
    assert target.toolchain == toolchain
    (found,) = profile.models
    assert (found.name, found.written, found.load) == ("m", model.path, load)
    assert profile.budget.ram_bytes == 64 * 1024
    assert profile.budget.flash_bytes is None
    assert text.startswith("#:schema profile.schema.json\n")
    assert max(map(len, text.splitlines())) <= 88


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("quantize", [True, False])
def test_a_model_given_as_python(lowering: str, *, quantize: bool) -> None:
    new = NewProfile(
        name="p",
        cpu="cortex-m55",
        board="mps3-an547",
        toolchain="zig",
        load="pte",
        models=(
            NewModel(name="a", path="a.pte"),
            NewModel(name="b", source="code/b.py:build", lowering=lowering, quantize=quantize),
        ),
    )
    _, profile = _loaded(new)
    model = profile.models[1]
    assert model.source is not None
    assert (model.source.function, model.lowering) == ("build", lowering)
    assert (model.quantize is not None) == quantize


def test_names() -> None:
    assert product_name("KWS_net (2).int8") == "kws-net-2-int8"
    assert product_name("123") == "product"
    assert product_name("m") == "my-m"  # libm.a
    assert product_name("Orch") == "my-orch"
    long = "m" * 60
    assert model_names(["A b", "a-b", "7", long, long]) == (
        *("a_b", "a_b_2", "model", "m" * 40),
        "m" * 38 + "_2",
    )
