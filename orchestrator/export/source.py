"""The user's code: found, imported, called, and its result checked."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join, quote
from types import MethodType
from typing import Any

from orchestrator.errors import did_you_mean
from orchestrator.export.failure import ExportError

FORWARD = "forward"
_KEYS = ("module", "inputs", "calibration", "dynamic_shapes", "constant_methods")
_EXPECTED = (
    f"(module, inputs), more of ({', '.join(_KEYS)}) in this order, or a dict with these keys"
)
_HINT = "see docs/export.md for what the callable returns"


@dataclass(frozen=True)
class Source:
    """A method as the code of its model returns it.

    Args:
        module: A `torch.nn.Module` in evaluation mode whose `forward` is the method.
            Modules of all methods have the same parameters and buffers.
        inputs: Example inputs, the arguments of the method.
        dynamic_shapes: As `torch.export.export` takes them.
    """

    module: Any
    inputs: tuple[Any, ...]
    dynamic_shapes: Any = None


@dataclass(frozen=True)
class Model:
    """A model as its code returns it.

    Args:
        methods: By name, in the order in which the examples are run.
        calibration: Calls from which scales are chosen: method and inputs, in order.
        constants: What constant methods give, by name.
    """

    methods: dict[str, Source]
    calibration: tuple[tuple[str, tuple[Any, ...]], ...]
    constants: dict[str, Any] = field(default_factory=dict)


def load_source(file: str, function: str) -> Model:
    """Import the file, call the function, check its result.

    Args:
        file: Absolute path.
        function: Name of a callable in it, which takes no arguments.

    Raises:
        ExportError: The code raises, or returns something else.
    """
    user = _root_of(Path(file))
    hint = f"run it by itself first: {_command(Path(file), user, function)}"
    with ExportError.around("failed-callable", "the model's code failed", hint):
        module = _import(Path(file), user)
    build = _callable(module, file, function)
    with ExportError.around("failed-callable", "the model's code failed", hint):
        result = build()
        return _checked(result)


def _root_of(file: Path) -> Path:
    """The folder that imports start in: above the package that the file is in."""
    folder = file.parent
    # As `python -m` finds it: relative imports of the model's package work.
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder


def _module_name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts)


def _command(file: Path, root: Path, function: str) -> str:
    """What calls the function as this process does, in any folder."""
    name = _module_name(file, root)
    code = f"from {name} import {function}; {function}()"
    if not name.replace(".", "").isidentifier():
        code = f'import importlib; importlib.import_module("{name}").{function}()'
    python = join([sys.executable, "-c", code])
    return f"cd {quote(str(Path.cwd()))} && PYTHONPATH={quote(str(root))} {python}"


def _import(file: Path, root: Path) -> Any:
    # In front, as for a script: modules beside the model are found before installed
    # ones.
    sys.path.insert(0, str(root))
    name = _module_name(file, root)
    if "." in name:
        return importlib.import_module(name)
    # A package of the same name, such as torch, must not hide the file.
    # By path: import_module("torch") would give the package where the file is torch.py.
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # pickle and dataclasses look a class's module up by name.
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
    raise ExportError(
        "bad-callable",
        f'{Path(file).name} has no callable "{function}"',
        notes=(("found", ", ".join(own) or "no callable"),),
        hint=did_you_mean(function, own) or "name one of them",
    )


def _checked(result: Any) -> Model:
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
    module, inputs, calibration, shapes, constants = parts
    if not isinstance(module, torch.nn.Module):
        raise _bad(f"{_kind(module)} as module", "a torch.nn.Module")
    if isinstance(calibration, torch.Tensor) or not isinstance(calibration, (Iterable, type(None))):
        raise _bad(f"{_kind(calibration)} as calibration", "samples, one by one")
    if module.training:
        _evaluate(module)
    for parameter in module.parameters():
        # Gradients give nodes other numbers and metadata, and take memory.
        parameter.requires_grad_(False)  # noqa: FBT003  # nothing is trained here
    if isinstance(inputs, Mapping):
        methods = _methods(module, inputs, shapes or {})
        samples = [_call(sample, methods) for sample in calibration or ()]
    else:
        methods = {FORWARD: Source(module, _inputs(inputs, "inputs"), _in_order(module, shapes))}
        what = "a calibration sample"
        samples = [(FORWARD, _inputs(sample, what)) for sample in calibration or ()]
    return Model(
        methods=methods,
        calibration=tuple(samples) or tuple((n, m.inputs) for n, m in methods.items()),
        constants=_constants(constants or {}, methods),
    )


def _methods(module: Any, inputs: Any, shapes: Any) -> dict[str, Source]:
    """Several methods, each as a module; the modules share their tensors."""
    import torch  # noqa: PLC0415

    own = [
        name
        for name, value in inspect.getmembers(type(module), inspect.isfunction)
        if value is not getattr(torch.nn.Module, name, None) and name[0] != "_"
    ]
    for name in inputs:
        if name not in own:
            raise ExportError(
                "bad-callable",
                f'{type(module).__name__} has no method "{name}"',
                notes=(("found", ", ".join(own) or "no methods"),),
                hint=did_you_mean(str(name), own) or _HINT,
            )
    if not inputs:
        raise _bad("no method in inputs", "example inputs by method")
    if not isinstance(shapes, Mapping) or not shapes.keys() <= inputs.keys():
        raise _bad(f"{_kind(shapes)} as dynamic_shapes", "a dict by method of inputs")
    found = {}
    for name, values in inputs.items():
        # Shallow: parameters and buffers are the same tensors in all methods, which is
        # what makes them one state.
        view = copy.copy(module)
        if name != FORWARD:
            view.forward = MethodType(getattr(type(module), name), view)
        given = _inputs(values, f'inputs of "{name}"')
        found[name] = Source(view, given, _in_order(view, shapes.get(name)))
    return found


def _in_order(module: Any, shapes: Any) -> Any:
    """Dynamic shapes in the order of arguments: names are lost where it is wrapped."""
    if not isinstance(shapes, Mapping):
        return shapes
    names = inspect.signature(module.forward).parameters
    # *args have one name for all: only the user's own form says which is meant.
    if any(names[n].kind is names[n].VAR_POSITIONAL for n in shapes if n in names):
        return shapes
    found = tuple(shapes[name] for name in names if name in shapes)
    return found if len(found) == len(shapes) else shapes


def _call(sample: Any, methods: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    match sample:
        case [str(name), inputs] if name in methods:
            return name, _inputs(inputs, f'a calibration sample of "{name}"')
    expected = "(method, inputs), with one of the methods of inputs"
    raise _bad(f"{_kind(sample)} as a calibration sample", expected)


def _constants(constants: Any, methods: Mapping[str, Any]) -> dict[str, Any]:
    import torch  # noqa: PLC0415

    if not isinstance(constants, Mapping):
        raise _bad(f"{_kind(constants)} as constant_methods", "a dict by method")
    for name, value in constants.items():
        what = f'constant_methods["{name}"]'
        if name in methods or not str(name).isidentifier():
            raise _bad(what, "a name that no method of inputs has")
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if not isinstance(part, (bool, int, float, str, torch.Tensor)):
                raise _bad(f"{_kind(part)} in {what}", "numbers, texts and tensors")
    return dict(constants)


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
