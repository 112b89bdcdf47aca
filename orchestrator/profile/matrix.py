"""`[matrix]`: the targets that one profile is built for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, Field, StrictBool, StrictStr

from orchestrator.profile.choices import Optimize
from orchestrator.profile.fields import choice, problem, shown
from orchestrator.profile.table import Table
from orchestrator.targets.cores import CPUS, TOOLCHAINS

AXES: Final = (("cpus", "cpu"), ("toolchains", "toolchain"), ("optimize", "optimize"))
"""Keys of a matrix, each with the key of `[target]` that takes one of its values."""

_Item = TypeVar("_Item")


def _without_repetition(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    for index, item in enumerate(items):
        if item in items[:index]:
            raise problem(
                "bad-value",
                f"{{key}} has {shown(item)} twice",
                hint="each value gives products of its own: leave one out",
            )
    return items


class MatrixTable(Table):
    """Targets of all profiles: each profile gives a product for every combination.

    Names of products get a suffix for each key that has several values. A profile that
    sets a key of `[target]` itself keeps it: that axis does not apply to it.
    """

    cpus: Annotated[
        tuple[Annotated[StrictStr, *choice(CPUS, "unknown-cpu")], ...],
        AfterValidator(_without_repetition),
    ] = Field(
        default=(),
        description="Cores: `cpu` of `[target]`.",
        examples=[["cortex-m4", "cortex-m55"]],
    )
    toolchains: Annotated[
        tuple[Annotated[StrictStr, *choice(TOOLCHAINS, "unknown-toolchain")], ...],
        AfterValidator(_without_repetition),
    ] = Field(
        default=(), description="Compilers: `toolchain` of `[target]`.", examples=[["zig", "gnu"]]
    )
    optimize: Annotated[
        tuple[Annotated[Optimize, *choice(Optimize)], ...], AfterValidator(_without_repetition)
    ] = Field(
        default=(),
        description="What compilers optimize for: `optimize` of `[target]`.",
        examples=[["size", "speed"]],
    )

    def axis(self, key: str) -> Sequence[str]:
        """The values of one of `AXES`."""
        return tuple(map(str, getattr(self, key)))


class ProfileMatrixTable(MatrixTable):
    """Which targets of the workspace's matrix the product has: docs/workspaces.md.

    Has no effect outside of a workspace. Each key takes some of the values that
    `orchestrator.toml` has; a key that is left out takes all.
    """

    enable: StrictBool = Field(
        default=True,
        description="Whether the workspace's matrix applies to this profile.",
        examples=[False],
    )
