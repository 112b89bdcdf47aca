"""What a command found out about one product."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ExitCode

if TYPE_CHECKING:
    from orchestrator.build.product import TargetFacts
    from orchestrator.workspace import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Sizes of a product in bytes; None where the command does not know one."""

    flash_bytes: int | None = None
    ram_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command found out about one product.

    Args:
        product: The product.
        done: What happened: `built`; "" if it failed. What follows " in ", ": " or "; "
            is of this product alone: `equal in 4 runs`.
        target: Core, compiler, what it optimizes for; None if the profile cannot be
            read.
        costs: Sizes now.
        before: Sizes in the lock, before; None if there was none.
        seconds: How long it took.
        notes: Warnings.
        exit_code: As the command would end for this product alone.
        problems: What is wrong.
        details: More that `--json` shows, by key.
    """

    product: Product
    done: str = ""
    target: TargetFacts | None = None
    costs: Costs = Costs()
    before: Costs | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    exit_code: ExitCode = ExitCode.OK
    problems: tuple[Diagnostic, ...] = ()
    details: dict[str, object] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether something is wrong with the product."""
        return self.exit_code is not ExitCode.OK


# Lines of the table [size] as build/lockfile.py writes them: one key on a line.
_SIZE = re.compile(r'^"(flash|ram)" = "(\d+) bytes"$', re.MULTILINE)


def sizes_in_lock(text: str) -> Costs | None:
    """Sizes that a lock names; None if it has none."""
    # A whole TOML parser takes longer than everything else about an unchanged product.
    found = {f"{key}_bytes": int(number) for key, number in _SIZE.findall(text)}
    return Costs(**found) if found else None


# What a command does with each product.


class Kind(StrEnum):
    """What a command does with each product."""

    BUILD = "build"
    CHECK = "check"
    SIZE = "size"
    VERIFY = "verify"
    RUN = "run"
    TEST = "test"
    LOCK_CHECK = "lock --check"
    OUTPUTS_CHECK = "lock --check --outputs"
