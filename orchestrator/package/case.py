"""The case of the self test: inputs, and what the product makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from orchestrator.errors import UsageError
from orchestrator.running.new_scenario import random_input
from orchestrator.running.product import Product, ProductMethod
from orchestrator.running.protocol import encode_request, untraced
from orchestrator.running.values import Call

# Fixed: packages of the same build have the same bytes. Chosen by hand.
_SEED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Calls of a product, and what came out.

    The self test of a package of sources is the application of `run` with this in flash
    instead of a file, so that it knows every kind of input and output.

    Args:
        request: As `run` sends it to the firmware.
        response: What the firmware wrote, without times.
        calls: Of each call: `model.method`, and where it ends in the response.
    """

    request: bytes
    response: bytes
    calls: tuple[tuple[str, int], ...]


def random_calls(product: Product) -> tuple[Call, ...]:
    """One call of each method, with the same random inputs every time.

    Raises:
        UsageError: A method has an input that no file can hold (`case-needed`).
    """
    random = np.random.default_rng(_SEED)
    calls: list[Call] = []
    for method in product.methods:
        inputs = [random_input(port, random) for port in method.inputs]
        known = tuple(value for value in inputs if value is not None)
        if len(known) != len(inputs):
            raise _case_needed(method)
        calls.append(Call(method=method, inputs=known))
    return tuple(calls)


def first_is_fresh(calls: Sequence[Call]) -> tuple[Call, ...]:
    """The calls, so that the first one begins with methods as they were linked."""
    # On a device the self test may run after the application has called methods.
    return (replace(calls[0], fresh=True), *calls[1:]) if calls else ()


def case_of(calls: Sequence[Call], response: bytes) -> Case:
    """The case of calls and of what the firmware answered."""
    # Times of trace hooks differ each time; the self test compares the other bytes.
    data, ends = untraced(response, calls)
    names = (f"{call.method.model}.{call.method.name}" for call in calls)
    return Case(
        request=encode_request(calls), response=data, calls=tuple(zip(names, ends, strict=True))
    )


def _case_needed(method: ProductMethod) -> UsageError:
    return UsageError.of(
        "case-needed",
        f"method {method} has an input that cannot be made up",
        found=", ".join(map(str, method.inputs)),
        hint="give the calls of the self test with --scenario",
    )
