"""One file, every core: the int8 models of the corpus on the host and on the boards.

Each was exported for a core and for plain C: scratch sizes differ, and linear layers
for MVE hold sums of their weights in place of a bias. Whichever file is built for
whichever target, outputs are the expected ones and the same to the bit. Where costs are
held the first of them are prelinked, all others loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.case_counts import count_case
from tests.conftest import CORPUS
from tests.costs import check_costs, costs_are_held
from tests.integration.test_corpus import INT8, corpus_product, outputs_of, outputs_together
from tests.same_bits import check_same_bits
from tests.targets import chosen_pairs
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.product import Product

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

PLAIN = "plain_c.pte"
Built = dict[str, tuple["Product", dict[str, dict[str, bytes]], dict[str, int]]]
"""By file: the product of all cases that have it, and by case outputs and, where
costs are held, instructions."""
CASES = [
    (case, file)
    for file in ("model.pte", PLAIN)
    for case in INT8
    if (CORPUS / case / file).exists()
]


@pytest.fixture(scope="module", params=[("host", "zig"), *chosen_pairs(further=True)], ids="-".join)
def products(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, Built]:
    """A product of each kind of file, and the outputs of few runs of it."""
    cpu, toolchain = request.param
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    built: Built = {}
    for file in ("model.pte", PLAIN):
        folder = tmp_path_factory.mktemp("int8")
        cases = [case for case, own in CASES if own == file]
        held = file != PLAIN and costs_are_held(cpu, toolchain)
        product = corpus_product(
            folder,
            "int8",
            cases,
            load="prelinked" if held else "pte",
            cpu=cpu,
            toolchain=toolchain,
            file=file,
        )
        assert product.run("build") == 0
        found: dict[str, int] = {}
        outputs = outputs_together(product, cases, folder, instructions=found if held else None)
        built[file] = product, outputs, found
    return cpu, toolchain, built


@pytest.mark.parametrize("model", CASES, ids="-".join)
def test_outputs_are_the_same_everywhere(  # noqa: PLR0917  # fixtures
    products: tuple[str, str, Built],
    model: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    case, file = model
    cpu, toolchain, built = products
    product, together, instructions = built[file]
    outputs = together.get(case) or outputs_of(product, case, tmp_path, capsys)
    check_same_bits(case, outputs, f"{file} on {cpu} {toolchain}")
    if file != PLAIN:
        count_case(record_property, case, cpu)
        if costs_are_held(cpu, toolchain):
            costs = {"instructions": instructions.get(case, 0)}
            check_costs(request.config, cpu, f"{case} among others", costs)


def test_there_are_such_models() -> None:
    plain = [case for case, file in CASES if file == PLAIN]
    # One was exported for plain C alone.
    assert set(INT8) - set(plain) == {"kws_dscnn_int8_m0plus"}
