"""Kernel libraries that `init` lists for the programs it is given."""

from pathlib import Path

import pytest

from orchestrator.cli.commands.new_files import GivenModel, needed_libraries

DATA = Path(__file__).parents[3] / "data"


@pytest.mark.parametrize(
    ("program", "libraries"),
    [
        ("corpus/add_mul/model.pte", ()),
        ("corpus/kws_dscnn_int8_m4/model.pte", ("cortex_m", "portable")),
        ("int16/convnet.pte", ("cortex_m", "cortex_m_int16", "portable")),
        ("int16/net_that_is_not_there.pte", ()),
    ],
)
def test_libraries_are_those_with_kernels_for_its_dtypes(
    program: str, libraries: tuple[str, ...]
) -> None:
    assert needed_libraries([GivenModel(file=DATA / program)]) == libraries
