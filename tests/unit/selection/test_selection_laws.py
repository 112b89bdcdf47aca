"""Laws of selection: what adding, removing and reordering may change, and may not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.emit.executorch_headers import executorch_headers
from orchestrator.emit.generate import Product, generate
from orchestrator.errors import KernelError, OrchestratorError
from orchestrator.memory.plan import MemoryPlan
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.oplist import selected_operators_yaml
from orchestrator.selection.resolve import resolution_json, resolve
from orchestrator.shell.sources import native_root
from tests.conftest import CASES
from tests.unit.products import program_of, target_of
from tests.unit.selection.worlds import Shuffle, World, worlds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from orchestrator.core.kernel import KernelKey
    from orchestrator.selection.op_info import Selection
    from orchestrator.selection.resolution import Resolution

_RANDOMS = st.randoms(use_true_random=False)


def _links(found: Resolution) -> dict[tuple[str, KernelKey], str]:
    """Function by operator and kernel key of the calls it serves."""
    return {
        (str(operator.name), key): binding.kernel.function
        for operator in found.operators
        for binding in operator.bindings
        for key in binding.keys
    }


def _resolved(world: World) -> Resolution | None:
    """What is linked; None, and every operator that lacks something is named."""
    missing = world.unserved()
    try:
        found = world.resolve()
    except KernelError as error:
        messages = [d.message for d in error.diagnostics]
        assert missing == {n for n in missing if any(n in m for m in messages)}
        assert all(any(n in m for n in missing) for m in messages)
        return None
    assert not missing
    return found


# Adding and removing


@given(worlds(), st.data())
def test_one_more_kernel_takes_calls_over_or_changes_nothing(
    world: World, data: st.DataObject
) -> None:
    """Wherever it stands: in any entry of any library at any place of their order."""
    kernels = [offer.function for _, _, offer in world.kernels()]
    assume(kernels)
    added = data.draw(st.sampled_from(kernels))
    before = _resolved(world.without(added))
    if before is None:
        return
    after = _resolved(world)
    assert after is not None
    was, now = _links(before), _links(after)
    for request in world.requests():
        assert now[request] in (was[request], added)


@given(worlds(), st.data())
def test_one_kernel_less_fails_unless_another_takes_all_its_calls(
    world: World, data: st.DataObject
) -> None:
    before = _resolved(world)
    used = [] if before is None else sorted(set(_links(before).values()))
    assume(used)
    assert before is not None
    removed = data.draw(st.sampled_from(used))
    less = world.without(removed)
    # `_resolved` holds failing to the operators whose calls nothing else takes.
    after = _resolved(less)
    was = _links(before)
    (operator,) = {entry.operator for _, entry, o in world.kernels() if o.function == removed}
    assert less.unserved() <= {operator}
    if after is None:
        return
    now = _links(after)
    for request, calls in world.requests().items():
        if was[request] != removed:
            assert now[request] == was[request]
            continue
        (taker,) = (
            (entry, offer) for _, entry, offer in less.kernels() if offer.function == now[request]
        )
        assert taker[0].operator == request[0]
        assert all(taker[0].serves(taker[1], call) for call in calls)


def _portable() -> Catalog:
    file = native_root() / "kernels" / "portable" / "functions.yaml"
    text = file.read_text(encoding="utf-8")
    return read_catalog([LibraryText(name="portable", file=file.name, text=text)])


def _resolve(selection: Selection, catalog: Catalog) -> Resolution:
    return resolve(selection, catalog, every_dtype=False, span_of=lambda _: None)


def test_a_program_runs_with_none_of_its_portable_kernels_missing() -> None:
    """The library has one kernel per operator, so that nothing takes over."""
    catalog = _portable()
    ((_, kernels),) = catalog.libraries
    assert len({kernel.operator for kernel in kernels}) == len(kernels)
    resolved = set()
    for case in CASES:
        selection = aggregate([extract(program_of(case), model=case)])
        try:
            found = _resolve(selection, catalog)
        except KernelError:
            continue
        resolved.add(case)
        used = [b.kernel for o in found.operators for b in o.bindings]
        assert len(used) > 0
        for kernel in used:
            rest = tuple(k for k in kernels if k is not kernel)
            with pytest.raises(KernelError) as caught:
                _resolve(selection, Catalog(libraries=(("portable", rest),)))
            (gap,) = caught.value.diagnostics
            assert (gap.code, gap.message) == ("no-kernel", f"no kernel for {kernel.operator}")
    assert {"add_mul", "kws_dscnn_fp32", "ic_resnet8_fp32", "two_arenas"} <= resolved


# Reordering


def _outputs(world: World, shuffle: Shuffle) -> dict[str, str] | list[str]:
    """Text by path of all that selection decides; messages if something is missing."""
    selection = world.selection(shuffle)
    catalog = read_catalog(world.texts(shuffle))
    try:
        resolution = resolve(
            selection, catalog, every_dtype=world.every_dtype, span_of=lambda _: None
        )
    except OrchestratorError as error:
        return [diagnostic.message for diagnostic in error.diagnostics]
    used = {library for library, _ in resolution.sources}
    files = [
        *generate(
            Product("p", "Head.", {}, MemoryPlan(models=()), resolution=resolution),
            target_of("host", "zig"),
            generator="Orchestrator",
            kernels=tuple(k for n, ks in catalog.libraries if n in used for k in ks),
        ),
        *executorch_headers("head", selection, resolution),
    ]
    return {
        **{file.path: file.text for file in files},
        "selected_operators.yaml": selected_operators_yaml(selection, generator="p"),
        "resolution.json": resolution_json(resolution),
    }


def _shuffle(random: Random) -> Shuffle:
    def shuffled(items: Sequence[object], /) -> list[object]:
        return random.sample(items, len(items))

    return shuffled  # type: ignore[return-value]  # it keeps the type of its items


@given(worlds(), _RANDOMS)
def test_order_of_models_and_of_all_that_is_in_a_yaml_does_not_show(
    world: World, random: Random
) -> None:
    plain = _outputs(world, list)
    assert _outputs(world, _shuffle(random)) == plain
    if isinstance(plain, dict):
        assert not re.search(r"functions\.yaml", "".join(plain.values()))


@given(worlds(disjoint=True), st.data())
def test_order_of_libraries_without_a_common_operator_does_not_show(
    world: World, data: st.DataObject
) -> None:
    other = data.draw(st.permutations(world.libraries))
    assert _outputs(replace(world, libraries=tuple(other)), list) == _outputs(world, list)
