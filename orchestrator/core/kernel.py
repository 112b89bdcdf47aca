"""Kernel keys, kernels on offer, and what the resolver decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from orchestrator.core.dtype import ScalarType

if TYPE_CHECKING:
    from orchestrator.core.operator import OperatorName, OpSchema


@dataclass(frozen=True, slots=True, order=True)
class TensorMeta:
    """One tensor of a kernel key; a 0-d tensor has an empty dim order."""

    dtype: ScalarType
    dim_order: tuple[int, ...]

    def __str__(self) -> str:
        # ExecuTorch's registry compares keys as text, character by character, and lists
        # of ours go through its tools (tests/interop).
        return f"{int(self.dtype)};{','.join(map(str, self.dim_order))}"


@dataclass(frozen=True, slots=True, order=True)
class KernelKey:
    """Dtypes and dim orders of a call's tensors: `v1/6;0,1|6;0,1`, or bare `v1`.

    Source: ExecuTorch `runtime/kernel/operator_registry.h`.
    """

    tensors: tuple[TensorMeta, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a kernel key.

        Raises:
            ValueError: `text` is not a `v1` kernel key.
        """
        version, slash, rest = text.strip().partition("/")
        if version != "v1":
            raise ValueError(f'"{text}" is not a kernel key like v1/6;0,1|6;0,1')
        try:
            return cls(tuple(_parse_meta(t) for t in rest.split("|")) if slash else ())
        except ValueError as error:
            message = f'"{text}" is not a kernel key like v1/6;0,1|6;0,1'
            raise ValueError(message) from error

    @property
    def dtypes(self) -> frozenset[ScalarType]:
        """Every dtype that occurs in the key."""
        return frozenset(t.dtype for t in self.tensors)

    def __str__(self) -> str:
        return "v1" + "/" * bool(self.tensors) + "|".join(map(str, self.tensors))


def _parse_meta(text: str) -> TensorMeta:
    dtype, semicolon, order = text.partition(";")
    if not semicolon:
        raise ValueError(text)
    dims = tuple(int(d) for d in order.split(",")) if order else ()
    return TensorMeta(ScalarType(int(dtype)), dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One implementation offered by a kernel library.

    Args:
        operator: What it implements.
        schema: Of the operator.
        library: Name of the kernel library, as the profile writes it.
        function: Qualified C++ name, `orch::portable::add_out`.
        sources: Files to compile, relative to the library's folder, POSIX.
        keys: Kernel keys it is specialised for; empty for a fallback kernel.
        dtypes: Per argument of `schema.tensor_arguments` that is not a return:
            (argument name, dtypes the kernel takes there).
        dtype_arguments: Arguments whose dtypes decide which code is instantiated.
        argument_sets: Those of them that get their own set of dtypes as well.
        closure: Dtypes it always needs internally: compute and index types.
        dim_orders: `any`, `same` (all tensors of equal rank share one dim order),
            or `contiguous`.
        entry: Where it is declared, `kernels/portable/functions.yaml:12`.
        scratch: Per scratch argument that has one: (argument name, expression for its
            size in bytes).
        in_place: Arguments that may be the same memory as the output, if they have its
            dtype, sizes and dim order: the kernel reads each item before it writes it.
        requires: Further conditions on the arguments of a call, in the order in which
            they are checked.
        isas: Instruction sets for which it has code of its own, besides plain C++.
        error: Largest error of its floats: `2 ulp`, `4 ulp of the terms` of a sum,
            which may cancel out, or `undefined`; empty: the bits of PyTorch.
    """

    operator: OperatorName
    schema: OpSchema
    library: str
    function: str
    sources: tuple[str, ...]
    keys: tuple[KernelKey, ...]
    dtypes: tuple[tuple[str, frozenset[ScalarType]], ...]
    dtype_arguments: tuple[str, ...]
    closure: frozenset[ScalarType]
    dim_orders: str
    entry: str
    argument_sets: tuple[str, ...] = ()
    scratch: tuple[tuple[str, str], ...] = ()
    in_place: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    isas: tuple[str, ...] = ()
    error: str = ""
