"""What programs of the corpus cost on cores, held in tests/golden/costs.json.

A test that has built and run a program anyway calls `check_costs`, so that a change
which makes some program slower or larger shows where it is reviewed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.targets import RUN_ALWAYS
from tests.together import only_one

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from tests.product import Product

COSTS: Final = Path(__file__).parent / "golden" / "costs.json"
TOOLCHAIN: Final = "zig"
"""Is the same version everywhere."""
TOLERANCE: Final = 0.005
SLACK: Final = 16
"""Smaller differences, in instructions or bytes, are ignored."""


def costs_are_held(cpu: str, toolchain: str) -> bool:
    """Whether the file has what programs cost there."""
    return cpu in RUN_ALWAYS and toolchain == TOOLCHAIN


def bytes_of(product: Product) -> dict[str, int]:
    """Flash and RAM of a built product."""
    totals: Any = product.report()["totals"]
    return {"flash": totals["flash_bytes"], "RAM": totals["ram_bytes"]}


def check_costs(config: pytest.Config, cpu: str, name: str, found: Mapping[str, int]) -> None:
    """Compare with the file; write to it if goldens are to be updated.

    Args:
        config: Of the session.
        cpu: Where it ran.
        name: Of the program, and how it was built.
        found: Instructions and bytes, by what they are.
    """
    where = f"{cpu} {TOOLCHAIN}"
    if config.getoption("--update-golden"):
        # Workers write to one file.
        with only_one(COSTS.parents[2] / "build" / "costs"):
            held = _read()
            held.setdefault(where, {})[name] = dict(found)
            COSTS.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")
    expected = _read().get(where, {}).get(name, {})
    assert found.keys() == expected.keys(), f"{name}: run with --update-golden"
    changed = [
        f"{what} {expected[what]:,} -> {count:,}"
        for what, count in found.items()
        if abs(count - expected[what]) > max(TOLERANCE * expected[what], SLACK)
    ]
    assert not changed, (
        f"{name} on {where}: {', '.join(changed)}; make it cheaper, or run with"
        " --update-golden and explain it"
    )


def _read() -> dict[str, Any]:
    costs: dict[str, Any] = json.loads(COSTS.read_text()) if COSTS.exists() else {}
    return costs
