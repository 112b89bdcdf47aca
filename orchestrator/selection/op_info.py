"""Operators a model calls, and the union of what a product needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta

if TYPE_CHECKING:
    from orchestrator.core.operator import OperatorName


@dataclass(frozen=True, slots=True, order=True)
class CallPattern:
    """Shape of one operator call as far as it decides about kernels.

    Args:
        kinds: One letter of `ArgKind` per call argument, `N` for None, `O` for a
            tensor list with None in it.
        tensors: (argument position, meta) of every tensor argument that is not None,
            in order; a tensor list counts as its first tensor.
        list_items: (argument position, meta) of the further tensors of tensor lists;
            not part of the kernel key, but a kernel has to take them.
    """

    kinds: str
    tensors: tuple[tuple[int, TensorMeta], ...]
    list_items: tuple[tuple[int, TensorMeta], ...] = ()

    @property
    def key(self) -> KernelKey:
        """The kernel key ExecuTorch gives this call."""
        return KernelKey(tuple(meta for _, meta in self.tensors))


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """What requested an operator.

    Args:
        source: Model name, or the profile key such as `operators.include`.
        method: Method name; "" when it is not a model.
        instruction: 0-based index in the method; -1 when the method only lists it,
            and when it is not a model.
    """

    source: str
    method: str = ""
    instruction: int = -1

    def __str__(self) -> str:
        if not self.method:
            return self.source
        if self.instruction < 0:
            return f"{self.source}, method {self.method}"
        return f"{self.source}, method {self.method}, instruction {self.instruction}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCall:
    """One kernel call instruction."""

    operator: OperatorName
    pattern: CallPattern
    method: str
    instruction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateUse:
    """One delegate call instruction and the backend it needs.

    A delegate that is not called is needed to load the method: instruction -1.
    """

    backend: str
    method: str
    instruction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpInfo:
    """Operators, kernel keys and delegates one model uses.

    `operators` holds every operator the program lists, called or not, per method.
    """

    model: str
    operators: tuple[tuple[str, OperatorName], ...]
    calls: tuple[OpCall, ...]
    delegates: tuple[DelegateUse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedOperator:
    """An operator the product needs, and why.

    Args:
        name: The operator.
        patterns: Every distinct call of it, with who makes it; both sorted.
        keys: Kernel keys requested outside models; sorted.
        dtypes: Dtypes requested outside models, with any dim order; sorted.
        every_dtype: Requested without a key: all dtypes of the kernel.
        origins: What lists it; sorted.
    """

    name: OperatorName
    patterns: tuple[tuple[CallPattern, tuple[Origin, ...]], ...] = ()
    keys: tuple[KernelKey, ...] = ()
    dtypes: tuple[ScalarType, ...] = ()
    every_dtype: bool = False
    origins: tuple[Origin, ...] = ()

    @property
    def all_keys(self) -> tuple[KernelKey, ...]:
        """Kernel keys from calls and from outside models; sorted, distinct."""
        return tuple(sorted({p.key for p, _ in self.patterns} | set(self.keys)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Union of all requests; operators sorted by name."""

    operators: tuple[SelectedOperator, ...] = ()
    delegates: tuple[tuple[str, tuple[Origin, ...]], ...] = ()
    every_operator: bool = False
