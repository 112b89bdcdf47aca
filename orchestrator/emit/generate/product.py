"""What the generated header and sources of a product are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from orchestrator.emit.generate.ports import ApiMethod, api_methods, memory_of, update_names
from orchestrator.memory.plan import MemoryPlan, common_symbol, identifier
from orchestrator.method.linked import LinkedMethod
from orchestrator.profile.choices import CheckImage
from orchestrator.program.program import Program
from orchestrator.selection.resolution import Resolution

if TYPE_CHECKING:
    from orchestrator.targets.cores import Target

# By source, as the linker's view: a product with one of them has the generator, and its
# function to seed it.
_DRAWING: Final = frozenset({"op_native_dropout.cpp", "op_rand.cpp", "op_randn.cpp"})
"""Sources of `portable` whose kernels draw random numbers."""
_UPDATE_PARAMETERS: Final = (
    "const void* update, uint32_t size, uint32_t lowest_version, const orch_update_trust* trust"
)
"""Parameters of functions that take signed updates of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTarget:
    """Which signed updates a firmware accepts for a model.

    Args:
        identity: Of product and interface, 32 bytes.
        firmware_version: Packed.
    """

    identity: bytes
    firmware_version: int


@dataclass(frozen=True)
class Product:
    """A product; no slots, for what it keeps.

    Args:
        profile: Name of the profile.
        head: Text of the first line.
        programs: By model name, in the profile's order.
        memory: Sizes and places of all blocks.
        linked: By name of a prelinked model: its methods, in the program's order.
        resolution: Kernels to link.
        target: Target of the build; with one, the header does not compile for a core that
            cannot run the library.
        traced: The product has hooks around every instruction.
        integrity: When the product checks that flash holds what was linked.
        limits: By model, the most instructions that a run executes; 0: any number.
        instances: By model that is an instance, what the profile names it.
        updates: By model that takes signed updates, which ones.
        steps: By model and method: cycles of its longest step, or operators whose steps
            have no estimate.
        versions: By name of a constant of the header.
    """

    profile: str
    head: str
    programs: Mapping[str, Program]
    memory: MemoryPlan
    linked: Mapping[str, Sequence[LinkedMethod]] = field(default_factory=dict)
    _: KW_ONLY
    resolution: Resolution = field(default_factory=Resolution)
    target: Target | None = None
    traced: bool = False
    integrity: CheckImage = CheckImage.NEVER
    limits: Mapping[str, int] = field(default_factory=dict)
    instances: Mapping[str, str] = field(default_factory=dict)
    updates: Mapping[str, UpdateTarget] = field(default_factory=dict)
    steps: Mapping[tuple[str, str], int | tuple[str, ...]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def checked(self) -> bool:
        """Whether it can compare flash with what was linked."""
        return self.integrity is not CheckImage.NEVER

    @cached_property
    def methods(self) -> list[ApiMethod]:
        """Every method of every model, in order of the method table."""
        return api_methods(self.profile, self.programs, checked=self.checked, updates=self.updates)

    @property
    def context(self) -> dict[str, object]:
        """What the templates of header and source both use."""
        return {
            "profile": self.profile,
            "head": self.head,
            "base": identifier(self.profile),
            "programs": self.programs,
            "memory": self.memory,
            "methods": self.methods,
            "linked": self.linked,
            "checked": self.checked,
            "has_random": not _DRAWING.isdisjoint(
                dict(self.resolution.sources).get("portable", ())
            ),
            "limits": self.limits,
            "updates": self.updates,
            "update_parameters": _UPDATE_PARAMETERS,
            "update_names": update_names,
            "common_constant": common_constant,
            "memory_of": memory_of,
        }


def common_constant(profile: str, name: str) -> str:
    """Name of the header's constant for the size of a block that methods have in common."""
    return f"{identifier(profile)}_{common_symbol(name)}_BYTES".upper()
