"""The user's code: found, imported, called, and its result checked."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from orchestrator.export.failure import ExportError

_KEYS = ("module", "inputs", "calibration", "dynamic_shapes")
_EXPECTED = (
    "(module, inputs), (module, inputs, calibration),"
    " (module, inputs, calibration, dynamic_shapes), or a dict with these keys"
)
_HINT = "see docs/export.md for what the callable returns"


@dataclass(frozen=True)
class Source:
    """A model as its code returns it.

    Args:
        module: A `torch.nn.Module` in evaluation mode.
        inputs: Example inputs, the arguments of `forward`.
        calibration: Further inputs, from which scales are chosen.
        dynamic_shapes: As `torch.export.export` takes them.
    """

    module: Any
    inputs: tuple[Any, ...]
    calibration: tuple[tuple[Any, ...], ...]
    dynamic_shapes: Any


def load_source(file: str, function: str) -> Source:
    """Import the file, call the function, check its result.

    Args:
        file: Absolute path.
        function: Name of a callable in it, which takes no arguments.

    Raises:
        ExportError: The code raises, or returns something else.
    """
    user = _root_of(Path(file))
    hint = "run it by itself first: python -c"
    hint = f'{hint} "import {Path(file).stem}; {Path(file).stem}.{function}()"'
    with ExportError.around("failed-callable", "the model's code failed", hint):
        module = _import(Path(file), user)
    build = _callable(module, file, function)
    with ExportError.around("failed-callable", "the model's code failed", hint):
        result = build()
        return _checked(result)


def _root_of(file: Path) -> Path:
    """The folder that imports start in: above the package that the file is in."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder


def _import(file: Path, root: Path) -> Any:
    sys.path.insert(0, str(root))
    name = ".".join(file.relative_to(root).with_suffix("").parts)
    if "." in name:
        return importlib.import_module(name)
    # A package of the same name, such as torch, must not hide the file.
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def _callable(module: Any, file: str, function: str) -> Any:
    found = getattr(module, function, None)
    if callable(found):
        return found
    own = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    near = get_close_matches(function, own, n=1)
    raise ExportError(
        "bad-callable",
        f'{Path(file).name} has no callable "{function}"',
        notes=(("found", ", ".join(own) or "no callable"),),
        hint=f'did you mean "{near[0]}"?' if near else "name one of them",
    )


def _checked(result: Any) -> Source:
    import torch  # noqa: PLC0415  # the user's code has it already

    if isinstance(result, Mapping):
        unknown = [str(key) for key in result if key not in _KEYS]
        if unknown or not {"module", "inputs"} <= set(result):
            raise _bad(f"a dict with the keys {', '.join(map(str, result)) or 'none'}")
        parts = [result.get(key) for key in _KEYS]
    elif isinstance(result, (tuple, list)) and 2 <= len(result) <= len(_KEYS):  # noqa: PLR2004
        parts = [*result, *[None] * (len(_KEYS) - len(result))]
    else:
        raise _bad(_kind(result))
    module, inputs, calibration, dynamic_shapes = parts
    if not isinstance(module, torch.nn.Module):
        raise _bad(f"{_kind(module)} as module", "a torch.nn.Module")
    inputs = _inputs(inputs, "inputs")
    if isinstance(calibration, torch.Tensor) or not isinstance(
        calibration, (Iterable, type(None))
    ):
        raise _bad(f"{_kind(calibration)} as calibration", "samples, one by one")
    samples = [_inputs(s, "a calibration sample") for s in calibration or ()]
    if module.training:
        _evaluate(module)
    for parameter in module.parameters():
        parameter.requires_grad_(False)  # noqa: FBT003  # nothing is trained here
    return Source(
        module=module,
        inputs=inputs,
        calibration=tuple(samples) or (inputs,),
        dynamic_shapes=dynamic_shapes,
    )


def _evaluate(module: Any) -> None:
    try:
        module.eval()
    except NotImplementedError:
        # Modules from torch.export raise: their mode was fixed when they were made.
        return


def _inputs(value: Any, what: str) -> tuple[Any, ...]:
    import torch  # noqa: PLC0415

    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, (tuple, list)):
        return tuple(value)
    raise _bad(f"{_kind(value)} as {what}", "a tuple of arguments, or one tensor")


def _kind(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__


def _bad(found: str, expected: str = _EXPECTED) -> ExportError:
    return ExportError(
        "bad-callable",
        "invalid result of the model's callable",
        notes=(("found", found), ("expected", expected)),
        hint=_HINT,
    )
