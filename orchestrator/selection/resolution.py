"""Which kernels a product links, and for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.core.dtype import ScalarType
    from orchestrator.core.kernel import Kernel, KernelKey
    from orchestrator.core.operator import OperatorName, OpSchema
    from orchestrator.selection.op_info import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """One entry of the kernel table.

    Args:
        operator: What it implements.
        key: The only kernel key it is found by; None for any call.
        function: Qualified C++ name.
        signature: `OpSchema.signature` of the operator.
        dtypes: Every dtype the tensor arguments of its calls may have.
    """

    operator: OperatorName
    key: KernelKey | None
    function: str
    signature: str
    dtypes: frozenset[ScalarType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A kernel that is linked, and the calls it serves.

    Args:
        kernel: The kernel.
        keys: Kernel keys of the calls bound to it, and the other keys it is found by;
            sorted.
        dtypes: Dtypes to instantiate its code for, its closure included.
        argument_dtypes: (argument, dtypes) of `Kernel.argument_sets`: those it has in
            some call.
        table_dtypes: Every dtype the tensor arguments of its calls may have.
        every_dtype: It has to take every dtype it can, not only those of known calls.
        origins: Who needs it; sorted.
    """

    kernel: Kernel
    keys: tuple[KernelKey, ...]
    dtypes: frozenset[ScalarType]
    table_dtypes: frozenset[ScalarType]
    every_dtype: bool
    origins: tuple[Origin, ...]
    argument_dtypes: tuple[tuple[str, frozenset[ScalarType]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOperator:
    """An operator and its kernels, in the order in which they are tried."""

    name: OperatorName
    schema: OpSchema
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Missing:
    """A request that no kernel or delegate serves, which the profile allows.

    Methods that call it do not load.

    Args:
        name: Text of the operator's name, or id of the backend.
        reason: What is missing, one line.
        origins: What requests it; sorted.
    """

    name: str
    reason: str
    origins: tuple[Origin, ...]

    def __str__(self) -> str:
        return f"{self.reason}, needed by {'; '.join(map(str, self.origins))}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class DelegateCode:
    """User code that runs the parts of programs that are for a backend.

    Args:
        backend: Id in the programs.
        namespace: C++ namespace of its functions.
        state_bytes: RAM of each part of a model.
        sources: Relative to the folder of the delegate, sorted.
        named_data: It finds data by name.
    """

    backend: str
    namespace: str
    state_bytes: int
    sources: tuple[str, ...]
    named_data: bool = False

    @property
    def part_bytes(self) -> int:
        """RAM that the loader takes for each part of a model."""
        # The last ones are `NamedSource` of runtime/src/load_delegates.cpp.
        return -(-self.state_bytes // 8) * 8 + 24 if self.named_data else self.state_bytes

    @property
    def functions(self) -> tuple[str, str]:
        """Qualified C++ names of the functions that the runtime calls."""
        return f"{self.namespace}::init", f"{self.namespace}::execute"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ResolvedDelegate:
    """A delegate that is linked, and who needs it, sorted."""

    code: DelegateCode
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Every kernel of the product.

    Args:
        operators: Sorted by the text of their name.
        sources: (library, source files) of the libraries used; sorted, files are
            distinct and relative to the library's folder.
        table_entries: What the kernel table holds: sorted by the text of the operator
            name, then specialised entries by their key, the fallback last.
        missing: What the profile allows to be missing and is; sorted.
        delegates: Linked, by backend; sorted.
    """

    operators: tuple[ResolvedOperator, ...] = ()
    sources: tuple[tuple[str, tuple[str, ...]], ...] = ()
    table_entries: tuple[TableEntry, ...] = ()
    missing: tuple[Missing, ...] = ()
    delegates: tuple[ResolvedDelegate, ...] = ()

    @property
    def schemas(self) -> dict[OperatorName, OpSchema]:
        """Schemas of the operators that have a kernel."""
        return {o.name: o.schema for o in self.operators}

    @property
    def delegate_states(self) -> dict[str, int]:
        """RAM of each part of a model by its backend; empty without delegates."""
        return {d.code.backend: d.code.part_bytes for d in self.delegates}
