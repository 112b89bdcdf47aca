"""`orchestrator plumbing oplist`: an operator list for ExecuTorch's own build."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path

import orchestrator
from orchestrator.cli.commands.named_files import (
    depfile_problems,
    read_model,
    read_text,
    write_dependencies,
)
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, ModelError, OrchestratorError, ProfileError, UsageError
from orchestrator.selection.extract import aggregate, extract, union
from orchestrator.selection.op_info import Origin, Selection
from orchestrator.selection.oplist import read_dictionary, read_names, selected_operators_yaml
from orchestrator.selection.selection_yaml import read_operator_list
from orchestrator.shell.files import MOST_LIST_BYTES, write_if_changed
from orchestrator.shell.sources import package_files

_FILE_NAME = "selected_operators.yaml"


def run(args: Namespace, console: Console) -> ExitCode:
    """Write the union of all sources; the same sources give the same bytes."""
    UsageError.raise_if(depfile_problems(args))
    selection = read_union(
        [
            *(partial(_model, path) for path in args.model),
            *(partial(read_names, text, source="--ops") for text in args.ops),
            *(partial(read_dictionary, text, source="--ops-dict") for text in args.ops_dict),
            *(partial(read_file, path) for path in args.yaml),
        ]
    )
    selection = replace(selection, every_operator=selection.every_operator or args.every)
    # As ExecuTorch's gen_oplist.py does with `--output_path`.
    output = args.output / _FILE_NAME if args.output.is_dir() else args.output
    text = selected_operators_yaml(selection, generator=f"Orchestrator {orchestrator.__version__}")
    write_if_changed(output, text.encode())
    if args.depfile is not None:
        read = (*args.model, *args.yaml, *package_files())
        write_dependencies(
            args.depfile,
            target=args.depfile_target or str(output.absolute()),
            inputs=(str(path.absolute()) for path in read),
        )
    if not selection.operators and not selection.every_operator:
        console.status(f"{output}: nothing is selected")
    keys = sum(len(o.all_keys) + o.every_dtype for o in selection.operators)
    return console.result(
        {
            "output": str(output),
            "operators": len(selection.operators),
            "kernel_keys": keys,
            "include_all_operators": selection.every_operator,
        },
        f"{output}: {len(selection.operators)} operators, {keys} kernel keys",
    )


def read_union(readers: Iterable[Callable[[], Selection]]) -> Selection:
    """The union of all readers' selections.

    Raises:
        ModelError: Models cannot be read, and there are no other problems.
        UsageError: Other sources cannot be read; includes the problems of models.
    """
    selections, errors = [], []
    for read in readers:
        try:
            selections.append(read())
        except OrchestratorError as error:
            errors.append(error)
    if errors:
        only_models = all(isinstance(error, ModelError) for error in errors)
        problems = [problem for error in errors for problem in error.diagnostics]
        raise (ModelError if only_models else UsageError)(problems)
    # Even for one selection: the union has every operator once, in order.
    return reduce(union, selections, Selection())


def read_file(path: Path) -> Selection:
    """The selection of a YAML file. Raises UsageError."""
    wanted = "a functions.yaml or a selected_operators.yaml"
    text = read_text(path, wanted=wanted, most_bytes=MOST_LIST_BYTES)
    try:
        return read_operator_list(
            text, file=str(path), origin=Origin(_origin(path)), keep_sources=True
        )
    except ProfileError as error:  # no profile names the file here
        raise UsageError(error.diagnostics) from error


def _model(path: Path) -> Selection:
    return aggregate([extract(read_model(path), model=_origin(path))])


def _origin(path: Path) -> str:
    """The origin as the list shows it, without folders of this machine."""
    return path.name if path.is_absolute() else path.as_posix()
