"""New files: written whole, and never in the place of another."""

from __future__ import annotations

import ast
import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.catalog.read import read_library
from orchestrator.cli.terminal import say
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OperatorName
from orchestrator.errors import (
    Diagnostic,
    ModelError,
    SourceSpan,
    ToolchainError,
    UsageError,
    did_you_mean,
    nearest_path,
)
from orchestrator.printable import printable
from orchestrator.profile.starter import NewModel, model_names
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.shell.distribution import PACKAGE_FOLDER
from orchestrator.shell.files import lazy_file, read_text_file
from orchestrator.shell.sources import library_file, library_names
from orchestrator.shell.toolchain import InstalledToolchains, Toolchains
from orchestrator.targets.cores import BOARDS, CPUS, resolve_target

# Questions on a terminal: asked on stderr, answered on stdin.

# Columns.
WIDTH: Final = 80


def can_ask() -> bool:
    """Whether someone is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(
    question: str,
    *,
    default: str = "",
    choices: Sequence[str] = (),
    problem_of: Callable[[str], str] = lambda _: "",
) -> str:
    """Ask until the answer is valid; an empty answer takes the default.

    Many choices are listed only when the answer is `?`.

    Args:
        question: Without a question mark.
        default: "" if there is none, and an empty answer means none.
        choices: The valid answers; empty if any text will do.
        problem_of: Why an answer is not valid; "" if it is.

    Raises:
        UsageError: Standard input ended.
    """
    shown = f" [{default}]" if default else ""
    is_long = len(", ".join(choices)) + len(question) + len(shown) > WIDTH - 6
    if choices and is_long:
        prompt = f"{question} (? lists them){shown}: "
    elif choices:
        prompt = f"{question} ({', '.join(choices)}){shown}: "
    else:
        prompt = f"{question}{shown}: "
    while True:
        say(prompt)
        # Not `input`, which writes its prompt to stdout, where results go.
        line = sys.stdin.readline()
        if not line:
            say("\n")
            raise UsageError.wrong(
                "standard input ended before all questions were answered",
                "answer them by options, or take the defaults with --yes",
            )
        answer = line.strip() or default
        if choices == ("yes", "no"):
            answer = {"y": "yes", "n": "no"}.get(answer.lower(), answer.lower())
        if is_long and answer == "?":
            say(_in_columns(choices))
        elif choices and not answer:
            say(f"  an answer is needed: {' or '.join(choices)}\n")
        elif choices and answer not in choices:
            how = "? lists them" if is_long else "choose one of the list"
            hint = did_you_mean(answer, choices) or how
            say(f'  "{printable(answer)}" is not a choice: {hint}\n')
        elif problem := problem_of(answer):
            say(f"  {problem}\n")
        else:
            return answer


def _in_columns(choices: Sequence[str]) -> str:
    width = max(map(len, choices)) + 2
    per_line = max(1, (WIDTH - 2) // width)
    lines = [choices[i : i + per_line] for i in range(0, len(choices), per_line)]
    return "".join(
        f"  {''.join(f'{name:{width}}' for name in line)}".rstrip() + "\n" for line in lines
    )


TEMPLATES: Final = PACKAGE_FOLDER / "firmware_template"


def template_text(name: str, words: Mapping[str, str]) -> str:
    """The text of a template, with what stands in it between `@` signs."""
    text = (TEMPLATES / f"{name}.in").read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


GITIGNORE: Final = """\
# What `orchestrator build` makes. Commit the lock beside the profile.
build/
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What `write_files` did.

    Args:
        created: Files that are new.
        kept: Files that were there, and are as they were.
    """

    created: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_files(
    folder: Path,
    *,
    create: Mapping[str, str | bytes],
    keep: Mapping[str, str],
    absent: Sequence[Path] = (),
) -> Written:
    """Write files into a folder, which is made.

    Args:
        folder: May exist.
        create: Files by relative path; none of them may exist.
        keep: Files that stay as they are where they exist.
        absent: More paths that may not exist.

    Raises:
        UsageError: A file exists; nothing was written.
    """
    wanted = [*(folder / name for name in create), *absent]
    # All are looked at before the first is written: a command that fails leaves nothing
    # half.
    there = [path for path in wanted if path.exists() or path.is_symlink()]
    UsageError.raise_if([_exists(path) for path in there])
    created, kept = [], []
    for name, data in create.items():
        _create(folder / name, data)
        created.append(folder / name)
    for name, text in keep.items():
        path = folder / name
        if path.exists():
            kept.append(path)
        else:
            _create(path, text)
            created.append(path)
    return Written(created=tuple(created), kept=tuple(kept))


def _create(path: Path, data: str | bytes) -> None:
    create(path, data.encode() if isinstance(data, str) else data)


def create(path: Path, data: bytes) -> None:
    """Write a file that may not exist. Raises UsageError if it does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # "x": a file that came since then, or a link that leads nowhere, is not written
        # over.
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise UsageError(_exists(path)) from None


def _exists(path: Path) -> Diagnostic:
    return Diagnostic(
        code="file-exists",
        message=f"{path} exists, and is never overwritten",
        where=SourceSpan(file=str(path)),
        hint="choose another --name or --dir, or move the file away",
    )


# The target of a new profile: a core or a board, and a toolchain.

HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTarget:
    """`board` is "" on hosts."""

    cpu: str
    board: str
    toolchain: str


def choose_target(args: Namespace, toolchains: Toolchains | None, *, asks: bool) -> NewTarget:
    """The target that options or answers choose; without them the host.

    Args:
        args: Has `cpu`, `board` and `toolchain`.
        toolchains: Installed ones; None for those of this machine.
        asks: Whether to ask for what no option chooses.

    Raises:
        UsageError: Options contradict each other.
    """
    cpu, board = args.cpu, args.board
    if asks and cpu is None and board is None:
        answer = ask("Core or board", default=HOST, choices=(*CPUS, *BOARDS))
        cpu, board = (answer, None) if answer in CPUS else (None, answer)
    if board is None:
        cpu = cpu or HOST
        board = CPUS[cpu].default_board or ""
    elif cpu is None:
        cpu = BOARDS[board].cpu
    elif cpu not in BOARDS[board].cpus:
        raise UsageError.wrong(
            f"board {board} does not run firmware for {cpu}",
            f"leave out --cpu: the board has a {BOARDS[board].cpu}",
        )
    names = CPUS[cpu].toolchains
    toolchain = args.toolchain or _default(cpu, toolchains or InstalledToolchains())
    if asks and args.toolchain is None and len(names) > 1:
        toolchain = ask("Toolchain", default=toolchain, choices=names)
    return NewTarget(cpu=cpu, board=board, toolchain=toolchain)


def _default(cpu: str, toolchains: Toolchains) -> str:
    """The first toolchain that is installed, else the default one."""
    if cpu == HOST:
        return toolchains.name_for_host()
    names = CPUS[cpu].toolchains
    for name in names:
        target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=name, optimize="size")
        try:
            toolchains.find(target, trust_cache=True)
        except ToolchainError:
            continue
        return name
    return names[0]


# Models that `orchestrator init` is given: programs, `.pt2` files, Python code.

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
    UsageError.raise_if(problems)
    return tuple(found)


def _given(text: str, *, asks: bool) -> GivenModel:
    name, colon, function = text.rpartition(":")
    if not colon or not name.endswith(CODE):
        name, function = text, ""
    path = Path(name)
    near = None if path.exists() else nearest_path(path)
    if path.suffix not in (PROGRAM, EXPORTED, CODE) and not near:
        raise _bad(name, "this is not a model", path.suffix or "no suffix")
    if not path.is_file():
        hint = f'did you mean "{near}"?' if near else ""
        raise _bad(name, "no such file", "nothing there", hint)
    if path.suffix == CODE:
        function = _function(path, function, asks=asks)
    return GivenModel(file=path, function=function)


def _function(path: Path, function: str, *, asks: bool) -> str:
    """The callable of a Python file that gives the model."""
    try:
        # Read, not imported: PyTorch alone takes seconds, and the user's code may do
        # anything.
        tree = ast.parse(read_text_file(path))
    except (OSError, UnicodeDecodeError, ValueError, SyntaxError) as error:
        line = getattr(error, "lineno", None) or 0
        raise UsageError.wrong(
            f"{path} is not Python code",
            f"name {_EXPECTED}",
            where=SourceSpan(file=str(path), line=line),
            found=str(error),
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
    return UsageError.wrong(
        message,
        hint or f"name {_EXPECTED}",
        where=SourceSpan(file=file),
        found=found,
        expected=_EXPECTED,
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
            words = {"PATH": path, "QUOTED": repr(path)}
            files[f"{name}_pt2.py"] = template_text("pt2.py", words)
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
