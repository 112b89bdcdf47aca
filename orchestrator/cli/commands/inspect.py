"""`orchestrator inspect`: what is in a .pte program or a .ptd data file."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from orchestrator.cli.commands.named_files import read_bytes, shipped_kernels
from orchestrator.cli.console import Console
from orchestrator.cli.render import diagnostic_to_json
from orchestrator.core.lazy_bytes import Bytes, sha256_of
from orchestrator.core.operator import OperatorName, out_variant
from orchestrator.errors import Diagnostic, ExitCode, SourceSpan
from orchestrator.method.lifetimes import peak_live_bytes
from orchestrator.method.state import StateError, with_state
from orchestrator.printable import printable
from orchestrator.program.caller import caller_values
from orchestrator.program.external import is_data_file, read_flat_tensors
from orchestrator.program.program import KernelCall, Method, Program
from orchestrator.program.reader import read_to_show
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue, kind_name
from orchestrator.selection.extract import extract
from orchestrator.selection.op_info import OpInfo
from orchestrator.selection.resolve.gaps import without_out_variants

_Json: TypeAlias = dict[str, Any]
"""A part of the document of `--json`, of which the text is made as well."""


def run(args: Namespace, console: Console) -> ExitCode:
    """Print methods, operators with kernel keys, memory, constants and delegates.

    Then what Orchestrator cannot do with the program, all of it: it is the program that
    is shown, so that is no failure. Of a program that is damaged, or newer than this
    version, what can be read is shown.
    """
    file = str(args.model)
    data = read_bytes(args.model)
    if is_data_file(data):
        return _show_data_file(data, args.model, console)
    read = read_to_show(data, file=file)
    program, problems = read.program, [*read.problems]
    if read.is_sound:
        info = extract(program, model=args.model.stem)
        with suppress(StateError):  # `check` reports it
            program = with_state(program, {})
        methods = [_method(m, info, program) for m in program.methods]
    else:
        methods = [_outline(m, counts=not read.has_gaps) for m in program.methods]
    document = {
        "file": args.model.name,
        "size_bytes": len(program.file),
        "sha256": program.sha256,
        "schema_version": program.version,
        "extended_header": program.header is not None,
        "segments": [{"offset": s.offset, "size_bytes": s.size_bytes} for s in program.segments],
        "named_data": [n.key for n in program.named_data],
        "complete": read.is_sound,
        "methods": methods,
    }
    if program.named_data:
        document["named_data_bytes"] = dict(program.delegate_data)
    problems += _without_kernel(methods, file)
    document["problems"] = [diagnostic_to_json(problem) for problem in problems]
    text = _text if read.is_sound else _outline_text
    console.result(document, text(program, args.model.name, methods))
    if problems:
        console.problems(problems)
    # Programs that this runtime does not support are sound files; damaged ones are not.
    is_shown = all(p.code in _NO_FAILURE for p in problems)
    return ExitCode.OK if is_shown else ExitCode.MODEL


def _show_data_file(data: Bytes, path: Path, console: Console) -> ExitCode:
    """What is in a data file, which has no program."""
    head = {"file": path.name, "size_bytes": len(data), "sha256": sha256_of(data)}
    tensors, named = [], {}
    lines = [f"{path.name}: {len(data):,} bytes, sha256 {head['sha256']}", ""]
    for stored in read_flat_tensors(data, file=str(path)):
        size = len(stored.data)
        if stored.dtype is None:
            named[stored.name] = size
            continue
        tensor = {"name": stored.name, "dtype": stored.dtype.name, "size_bytes": size}
        tensor |= {"sizes": [*stored.sizes], "dim_order": [*stored.dim_order]}
        tensors.append(tensor)
        text = f"{stored.dtype.name} {[*stored.sizes]}, {size:,} bytes"
        lines.append(f"  tensor {printable(stored.name)}   {text}")
    return console.result(
        {**head, "tensors": tensors, "named_data_bytes": named},
        "\n".join([*lines, *_named_lines(named.items())]),
    )


def _named_lines(blocks: Iterable[tuple[str, int]]) -> list[str]:
    """Data that delegates find by name."""
    return [f"  named data {printable(key)}, {size:,} bytes" for key, size in blocks]


_NO_FAILURE = frozenset({"no-kernel", "unsupported-program"})
"""Problems of a program that is as it should be."""


def _outline(method: Method, *, counts: bool) -> _Json:
    """What can be said of a method that cannot be read in full."""
    operators = method.operators
    calls = Counter(
        str(operators[i.operator])
        for i in method.instructions
        if isinstance(i, KernelCall) and 0 <= i.operator < len(operators)
    )
    return {
        "name": method.name,
        "values": len(method.values),
        "instructions": len(method.instructions),
        "operators": [
            {"name": name, "calls": calls[name] if counts else None}
            for name in sorted(set(map(str, operators)))
        ],
        "delegates": [{"backend": d.backend} for d in method.delegates],
    }


def _outline_text(program: Program, name: str, methods: list[_Json]) -> str:
    lines = [
        f"{name}: {len(program.file):,} bytes, sha256 {program.sha256}, cannot be read in full"
    ]
    for method in methods:
        lines += ["", f"method {printable(method['name'])}"]
        lines.append(f"  {method['values']} values, {method['instructions']} instructions")
        for operator in method["operators"]:
            calls = operator["calls"]
            known = "" if calls is None else f", {calls} calls"
            lines.append(f"  {printable(operator['name'])}{known}")
        lines += [f"  delegate {printable(d['backend'])}" for d in method["delegates"]]
    return "\n".join(lines)


def _without_kernel(methods: list[Any], file: str) -> list[Diagnostic]:
    """Operators of which no kernel library of Orchestrator has a kernel."""
    known = {str(kernel.operator): kernel.operator for kernel in shipped_kernels()}
    called = {
        operator["name"] for method in methods for operator in method["operators"]
    } - known.keys()
    functional = set()
    for name in called:
        with suppress(ValueError):  # a damaged name
            if out_variant(OperatorName.parse(name), known.values()):
                functional.add(name)
    problems = [
        Diagnostic(
            code="no-kernel",
            message=f"no library of Orchestrator has a kernel for {printable(name)}",
            where=SourceSpan(file=file),
            hint="export the model without it, or add a kernel: docs/kernels.md",
        )
        for name in sorted(called - functional)
    ]
    if functional:
        gap = without_out_variants(functional)
        problems.append(replace(gap, where=SourceSpan(file=file)))
    return problems


def _method(method: Method, info: OpInfo, program: Program) -> _Json:
    calls = [c for c in info.calls if c.method == method.name]
    counts = Counter(str(c.operator) for c in calls)
    keys: dict[str, set[str]] = {}
    for call in calls:
        keys.setdefault(str(call.operator), set()).add(str(call.pattern.key))
    tensors = [v for v in method.values if isinstance(v, TensorValue)]
    given = caller_values(method)
    return {
        "name": method.name,
        "inputs": [_value(method, i, given) for i in method.inputs],
        "outputs": [_value(method, i, given) for i in method.outputs],
        "values": len(method.values),
        "instructions": len(method.instructions),
        "operators": [
            {"name": name, "calls": counts[name], "kernel_keys": sorted(keys[name])}
            for name in sorted(counts)
        ],
        "delegates": [
            {"backend": d.backend, "size_bytes": len(program.delegate_bytes(d))}
            for d in method.delegates
        ],
        "arenas": [
            {
                "memory_id": i,
                "size_bytes": method.arena_bytes[i],
                "shared": i == SHARED_ID and method.name in program.sharers,
                "lower_bound_bytes": peak_live_bytes(method, i),
            }
            for i in range(1, len(method.arena_bytes))
        ],
        "planned": [
            {
                "value": i,
                "memory_id": v.allocation.memory_id,
                "offset_bytes": v.allocation.offset_bytes,
                "size_bytes": v.size_bytes,
                "dtype": v.dtype.name,
                "sizes": list(v.sizes),
            }
            for i, v in enumerate(method.values)
            if isinstance(v, TensorValue) and v.allocation is not None
        ],
        "external": sorted({t.extra.qualified_name for t in tensors if t.is_external and t.extra}),
        "constant_bytes": sum(t.size_bytes for t in tensors if t.is_constant),
        "mutable_state_bytes": sum(t.size_bytes for t in tensors if t.is_state),
    }


def _value(method: Method, index: int, given: frozenset[int]) -> _Json:
    value = method.values[index]
    if not isinstance(value, TensorValue):
        return {"kind": kind_name(type(value))}
    return {
        "kind": "tensor",
        "dtype": value.dtype.name,
        "sizes": list(value.sizes),
        "dim_order": list(value.dim_order),
        "dynamic": value.is_dynamic,
        "caller": index in given,
    }


def _text(program: Program, name: str, methods: list[_Json]) -> str:
    lines = [f"{name}: {len(program.file):,} bytes, sha256 {program.sha256}"]
    for method in methods:
        lines += ["", f"method {printable(method['name'])}"]
        lines += [f"  input {i}   {_text_of(v)}" for i, v in enumerate(method["inputs"])]
        lines += [f"  output {i}   {_text_of(v)}" for i, v in enumerate(method["outputs"])]
        lines.append(
            f"  {method['values']} values, {method['instructions']} instructions,"
            f" {method['constant_bytes']:,} bytes of constants"
        )
        lines += [f"  in a data file: {printable(name)}" for name in method["external"]]
        lines += [
            f"  arena {a['memory_id']}   {a['size_bytes']:,} bytes,"
            f" at least {a['lower_bound_bytes']:,} are live at once"
            f"{', shared by all methods' if a['shared'] else ''}"
            for a in method["arenas"]
        ]
        for operator in method["operators"]:
            lines.append(f"  {printable(operator['name'])}, {operator['calls']} calls")
            lines += [f"    {key}" for key in operator["kernel_keys"]]
        lines += [
            f"  delegate {printable(d['backend'])}, {d['size_bytes']:,} bytes"
            for d in method["delegates"]
        ]
    if program.named_data:
        lines += ["", *_named_lines(program.delegate_data)]
    return "\n".join(lines)


def _text_of(value: _Json) -> str:
    if value["kind"] != "tensor":
        return str(value["kind"])
    text = f"{value['dtype']} {value['sizes']}"
    if value["dynamic"]:
        text += ", sizes are upper bounds"
    if value["caller"]:
        text += ", in memory of the caller"
    return text
