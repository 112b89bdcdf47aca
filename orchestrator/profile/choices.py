"""Closed sets of the profile's values; importing them is cheap.

Sets that other topics use are defined there: `planner.policy`, `targets.regions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Optimize(StrEnum):
    """What the compiler optimizes for."""

    SIZE = "size"
    SPEED = "speed"
    DEBUG = "debug"


class Via(StrEnum):
    """How the runner of `run` reaches the host."""

    SEMIHOSTING = "semihosting"
    UART = "uart"


class Image(StrEnum):
    """A format of the firmware for programmers, drives and boot loaders."""

    HEX = "hex"
    BIN = "bin"
    UF2 = "uf2"


class Load(StrEnum):
    """How a model gets onto the device."""

    PTE = "pte"
    PRELINKED = "prelinked"


class DtypeSelect(StrEnum):
    """Which dtypes are compiled into the selected kernels."""

    MODELS = "models"
    ALL = "all"


class Overlap(StrEnum):
    """Whether several models, or several libraries, may have the same operator."""

    ALLOW = "allow"
    ERROR = "error"


class CheckImage(StrEnum):
    """When a product checks that flash holds what was linked.

    Never, when the application requests it, or also before a method's first call.
    """

    NEVER = "never"
    START = "start"
    LOAD = "load"


class RegionKind(StrEnum):
    """The use of a memory."""

    FLASH = "flash"
    RAM = "ram"


# Texts only: the passes import NumPy and much of `method`, which commands without a
# profile would pay for.
PASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fold_permutes": "no permuting of constants at run time",
        "fold_constants": "no other copies and views of constants at run time",
        "evaluate_constants": "no calls on constants at run time",
        "alias_copies": "no needless copies",
        "fold_pads": "pads in the call that reads them",
        "fold_transposes": "no transposes that others undo, or that weights can take",
        "fold_batch_norm": "what `passes.fold_batch_norm` says",
        "cancel_quantize": "no floats between int8 items, where a table or nothing does the same",
        "drop_unused_calls": "no calls whose outputs are unused",
        "keep_inputs": "what `models.io` says",
        "quantized_io": "what `models.io` says",
        "in_place": "outputs over inputs that are no longer needed",
        "fuse_activations": "activations as limits of the call before",
        "fuse_float_activations": "activations of floats in the call before",
        "round_weights": "what `models.weights` says",
        "pack_weights": "int8 weights in the order in which the kernel reads them",
        "order_calls": "the order of calls that needs least memory",
        "drop_values": "no unused slots",
        "prepare_calls": "no arguments to read and check at run time",
        "share_values": "no duplicate slots",
    }
)
"""Passes of stage `prelink` by name, with what they are for; a test compares the names."""
IO_PASSES: Final = ("keep_inputs", "quantized_io")
"""Those that do what `[models.io]` says."""
WEIGHT_PASSES: Final = ("round_weights", "pack_weights")
"""Those that do what `[models.weights]` says."""
