"""How models are lowered: the options of Vela."""

from __future__ import annotations

import pytest

from orchestrator.profile.lowering import (
    ETHOS_U,
    NO_VELA,
    VELA_MEMORY_MODES,
    VELA_SYSTEM_CONFIGS,
    Vela,
    system_configs_of,
    vela_text,
    with_defaults,
)


@pytest.mark.parametrize("lowering", ETHOS_U)
def test_defaults_are_sections_of_vela(lowering: str) -> None:
    found = with_defaults(NO_VELA, lowering)
    assert found.system_config in system_configs_of(lowering)
    assert found.memory_mode in VELA_MEMORY_MODES
    own = Vela(system_config="Board", memory_mode="Fast", config="a.ini")
    assert with_defaults(own, lowering) == own


def test_every_system_is_for_one_core() -> None:
    cores = {lowering.rpartition("-")[0]: lowering for lowering in ETHOS_U}
    found = [c for lowering in cores.values() for c in system_configs_of(lowering)]
    assert sorted(found) == sorted(VELA_SYSTEM_CONFIGS)


def test_the_lock_has_it_as_options() -> None:
    assert vela_text(NO_VELA, ".") == ""
    vela = Vela(memory_mode="Fast", config="../a/b.ini", flags=("--optimise=Size",))
    text = "--memory-mode=Fast --config=b.ini --optimise=Size"
    assert vela_text(vela, "b.ini") == text
