"""Closed sets of the profile's values; importing them is cheap.

Sets that other topics use are defined there: `planner.policy`, `targets.regions`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Optimize(StrEnum):
    """What the compiler optimizes for."""

    SIZE = "size"
    SPEED = "speed"
    DEBUG = "debug"


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


# Names only: the passes import NumPy and much of `method`, which commands without a
# profile would pay for.
PASSES: Final = (
    *("fold_permutes", "fold_constants", "evaluate_constants", "alias_copies"),
    *("fold_pads", "fold_transposes", "fold_batch_norm", "cancel_quantize"),
    *("drop_unused_calls", "keep_inputs", "quantized_io", "in_place"),
    *("fuse_activations", "fuse_float_activations", "round_weights", "pack_weights"),
    *("order_calls", "drop_values", "prepare_calls", "share_values"),
)
"""Names of the passes of stage `prelink`; a test compares them with the passes."""
IO_PASSES: Final = ("keep_inputs", "quantized_io")
"""Those that do what `[models.io]` says."""
WEIGHT_PASSES: Final = ("round_weights", "pack_weights")
"""Those that do what `[models.weights]` says."""
