"""The functions that conditions can call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from types import MappingProxyType
from typing import Final, TypeVar

from orchestrator.catalog.expressions.values import Helper, Kind, StridedItems, Value

_F = TypeVar("_F", bound=Callable[..., Value | StridedItems])
_NUMBERS: Final = ("Sizes", "Sequence[Number]", "tuple[Number, ...]")
_KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "TensorFacts": Kind.TENSOR,
        "tuple[TensorFacts | None, ...]": Kind.TENSORS,
        "Number": Kind.NUMBER,
        **dict.fromkeys(_NUMBERS, Kind.NUMBERS),
        # In Python one dimension need not be a list.
        **dict.fromkeys((f"{numbers} | Number" for numbers in _NUMBERS), Kind.NUMBERS),
        "Value": Kind.SCALAR,
        "tuple[float, ...]": Kind.SCALARS,
        "ScalarType": Kind.DTYPE,
        "StridedItems": Kind.NUMBERS,  # its sizes
        "bool": Kind.TRUTH,
    }
)
"""By annotation of a parameter or result: its kind."""
PREDICATES: Final[dict[str, Helper]] = {}
"""Functions of conditions by name, from the modules of this folder that define them."""


def _valued(compute: Callable[..., Value | StridedItems]) -> Callable[..., Value]:
    """A function whose result is a value of the language."""

    def run(*args: Value) -> Value:
        found = compute(*args)
        return found.sizes if isinstance(found, StridedItems) else found

    return run


def function(compute: _F, name: str = "") -> _F:
    """Let conditions call a function, with the kinds and names of its parameters.

    Parameters that only Python gives are keywords. A name ends in `_` where Python or the
    parameter before it has the name.
    """
    found = signature(compute)
    given = [p for p in found.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    kinds = [_KINDS[p.annotation.removesuffix(" | None")] for p in given]
    names = [p.name.removesuffix("_") for p in given]
    more = given[-1].kind is given[-1].VAR_POSITIONAL
    if more:
        # Several that are alike have letters; others go on as the first of them.
        names[-1:] = ["a", "b"] if len(given) == 1 else [names[-1].removesuffix("s")]
    least = len(names)
    name = name or compute.__name__
    PREDICATES[name] = Helper(
        form=f"{name}({', '.join([*names, *['...'] * more])})",
        compute=_valued(compute),
        kinds=(*kinds, *kinds[-1:] * (least - len(kinds))),
        gives=_KINDS[found.return_annotation],
        least=least,
        most=0 if more else least,
        optional=any(p.annotation.endswith(" | None") for p in given),
    )
    return compute
