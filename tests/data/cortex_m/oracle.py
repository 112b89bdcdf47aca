"""ExecuTorch's own Python operators, where they can be asked."""
# mypy: ignore-errors
# (torch and the modules beside this are not there when the project is checked)

from __future__ import annotations

import contextlib
import importlib
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from file_format import Stored

with contextlib.suppress(ImportError):
    import executorch
    import torch

    def _load() -> Any:
        """The module of the operators, without the exporter it belongs to.

        The packages around it import tools that nothing here needs.
        """
        root = "executorch.backends.cortex_m"
        folder = Path(next(iter(executorch.__path__))) / "backends" / "cortex_m"
        for name in ("passes", "quantizer"):
            package = types.ModuleType(f"{root}.{name}")
            package.__path__ = [str(folder / name)]
            sys.modules[package.__name__] = package
        configs = types.ModuleType(f"{root}.quantizer.quantization_configs")
        configs.__dict__.update(CMSIS_SOFTMAX_SCALE=1 / 256, CMSIS_SOFTMAX_ZERO_POINT=-128)
        sys.modules[configs.__name__] = configs
        return importlib.import_module(f"{root}.ops.operators")

    _operators = _load()


class Oracle:
    """Compares results with those of `torch.ops.cortex_m`; without it, does nothing."""

    def __init__(self) -> None:
        """Begin without comparisons."""
        self.counts: dict[str, int] = {}
        self.known = "_operators" in globals()

    def check(self, name: str, args: list[Any], want: Any) -> None:
        """Fails if the operator gives something else."""
        if not self.known:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = getattr(torch.ops.cortex_m, name)(*(_value(a) for a in args))
            except NotImplementedError:  # dilated convolution of integers
                return
        array = np.asarray(want.array if isinstance(want, Stored) else want)
        assert str(found.dtype) == f"torch.{array.dtype}", name
        assert found.numel() == array.size, name
        same = np.array_equal(found.numpy().reshape(array.shape), array)
        assert same, (name, args, found, array)
        self.counts[name] = self.counts.get(name, 0) + 1


def _value(value: Any) -> Any:
    if isinstance(value, Stored):
        tensor = torch.from_numpy(np.ascontiguousarray(value.array))
        if value.order == (0, 2, 3, 1):
            return tensor.to(memory_format=torch.channels_last)
        return tensor
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, list | tuple):
        return [int(item) for item in value]
    return value
