"""Models that `orchestrator init` is given: programs, `.pt2` files, Python code."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.catalog.read import read_library
from orchestrator.cli.questions import ask
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, ModelError, SourceSpan, UsageError, nearest_path
from orchestrator.profile.starter import NewModel, model_names
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.shell.files import lazy_file, read_text_file
from orchestrator.shell.sources import library_file, library_names

PROGRAM, EXPORTED, CODE = ".pte", ".pt2", ".py"
_EXPECTED = "a program (.pte), an exported program (.pt2), or FILE.py:function"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenModel:
    """A model of the command line.

    Args:
        file: The file that it is in.
        function: Of Python code: the callable that gives it; else "".
    """

    file: Path
    function: str = ""


def given_models(texts: Sequence[str], *, asks: bool) -> tuple[GivenModel, ...]:
    """The models that a command line names.

    Args:
        texts: Its arguments.
        asks: Whether the user can be asked for what is missing.

    Raises:
        UsageError: All problems at once.
    """
    found: list[GivenModel] = []
    problems: list[Diagnostic] = []
    for text in texts:
        try:
            found.append(_given(text, asks=asks))
        except UsageError as error:
            problems += error.diagnostics
    if problems:
        raise UsageError(problems)
    return tuple(found)


def _given(text: str, *, asks: bool) -> GivenModel:
    name, colon, function = text.rpartition(":")
    if not colon or not name.endswith(CODE):
        name, function = text, ""
    path = Path(name)
    if path.suffix not in (PROGRAM, EXPORTED, CODE):
        raise _bad(name, "this is not a model", path.suffix or "no suffix")
    if not path.is_file():
        near = nearest_path(path)
        hint = f'did you mean "{near}"?' if near else ""
        raise _bad(name, "no such file", "nothing there", hint)
    if path.suffix == CODE:
        function = _function(path, function, asks=asks)
    return GivenModel(file=path, function=function)


def _function(path: Path, function: str, *, asks: bool) -> str:
    """The callable of a Python file that gives the model."""
    try:
        tree = ast.parse(read_text_file(path))
    except (OSError, UnicodeDecodeError, ValueError, SyntaxError) as error:
        line = getattr(error, "lineno", None) or 0
        raise UsageError.of(
            "usage",
            f"{path} is not Python code",
            where=SourceSpan(file=str(path), line=line),
            found=str(error),
            hint=f"name {_EXPECTED}",
        ) from error
    names = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not _needs_arguments(node.args)
    ]
    if function:
        # It may be imported, or made by an assignment: the export reports a wrong one.
        return function
    if len(names) == 1:
        return names[0]
    if names and asks:
        return ask(f"Which function of {path} returns the model", choices=names)
    raise _bad(
        str(path),
        "which function returns the model is not clear",
        ", ".join(names) or "no function without arguments",
        f"name it: {path}:{names[0] if names else 'build'}",
    )


def _needs_arguments(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    return positional > len(arguments.defaults) or None in arguments.kw_defaults


def _bad(file: str, message: str, found: str, hint: str = "") -> UsageError:
    return UsageError.of(
        "usage",
        message,
        where=SourceSpan(file=file),
        found=found,
        expected=_EXPECTED,
        hint=hint or f"name {_EXPECTED}",
    )


def new_models(
    given: Sequence[GivenModel], folder: Path, *, lowering: str, quantize: bool
) -> tuple[tuple[NewModel, ...], dict[str, str]]:
    """Models as the profile has them, and Python files that have to be beside it.

    Args:
        given: What the command line names.
        folder: Of the profile.
        lowering: Of models that the build exports.
        quantize: Whether it makes them int8.
    """
    models: list[NewModel] = []
    files: dict[str, str] = {}
    names = model_names(one.file.stem for one in given)
    for one, name in zip(given, names, strict=True):
        path = Path(os.path.relpath(one.file, folder)).as_posix()
        if one.file.suffix == PROGRAM:
            models.append(NewModel(name=name, path=path))
            continue
        source = f"{path}:{one.function}"
        if one.file.suffix == EXPORTED:
            files[f"{name}_pt2.py"] = _loader(path)
            source = f"{name}_pt2.py:build"
        models.append(NewModel(name=name, source=source, lowering=lowering, quantize=quantize))
    return tuple(models), files


def needed_libraries(given: Sequence[GivenModel]) -> tuple[str, ...]:
    """Kernel libraries for the operators of programs; empty if `portable` has all.

    A program that cannot be read needs none: `check` says what is wrong with it.
    """
    called: set[OperatorName] = set()
    dtypes: set[ScalarType] = set()
    for one in given:
        if one.file.suffix != PROGRAM:
            continue
        with suppress(OSError, ModelError):
            program = read_program(lazy_file(one.file), file=str(one.file))
            for method in program.methods:
                called.update(method.operators)
                dtypes.update(v.dtype for v in method.values if isinstance(v, TensorValue))
    found = [
        name
        for name in library_names()
        if name not in _ALWAYS
        and any(
            kernel.operator in called and _takes(kernel, dtypes)
            for kernel in _kernels(name, {operator.namespace for operator in called})
        )
    ]
    return (*found, _PORTABLE) if found else ()


def _takes(kernel: Kernel, dtypes: Collection[ScalarType]) -> bool:
    """Whether its first tensor can have one of these; others may be left out."""
    return not kernel.dtypes or not kernel.dtypes[0][1].isdisjoint(dtypes)


def _kernels(library: str, namespaces: set[str]) -> tuple[Kernel, ...]:
    """Kernels of a library; none are read if no operator is of these namespaces."""
    file = library_file(library)
    text = read_text_file(file)
    if namespaces.isdisjoint(re.findall(r"^- (?:func|op): (\w+)::", text, re.MULTILINE)):
        return ()
    return read_library(text, library=library, file=str(file))


_PORTABLE = "portable"
_ALWAYS = frozenset({_PORTABLE, "prim_ops"})
"""Libraries that every profile has by default."""


def _loader(path: str) -> str:
    """Python code that gives the model of a `.pt2` file."""
    return f'''\
"""The model of {path}, for the profile beside this file."""

from pathlib import Path

import torch

FILE = Path(__file__).parent / {path!r}


def build():
    """Return the module, its example inputs, and inputs for calibration."""
    program = torch.export.load(FILE)
    inputs, _ = program.example_inputs
    # Quantization chooses scales from these: list real inputs, not the example alone.
    calibration = [inputs]
    return program.module(), inputs, calibration
'''
