"""Programs to damage: those of the corpus, and ones that reach more kernel code.

Real programs are mostly of floats with fixed sizes. So those that the kernels at hand
can run are written once more with every other dtype, and with sizes that may change.

    python -m tests.fuzz.loader_seeds FOLDER
"""

from __future__ import annotations

import argparse
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from orchestrator.core.dtype import ALL, ScalarType
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from tests.conftest import CASES, CORPUS, model_bytes
from tests.cpp.support.native import linked_catalog
from tests.unit.program.program_writer import program_json, write_program

_MOST_BYTES: Final = 11_000
_WIDER: Final = 4
"""Items of ComplexDouble, the widest, are so many times those of Float."""
_PRIM_OPS: Final = CORPUS.parent / "prim_ops" / "model.pte"


def corpus_seeds() -> dict[str, bytes]:
    """Every small program of the corpus, by file name; no damaged ones."""
    found = {f"{case}.pte": model_bytes(case) for case in CASES}
    return {name: data for name, data in found.items() if len(data) <= _MOST_BYTES}


def prim_op_seeds() -> dict[str, bytes]:
    """A program whose sizes, branches and numbers are computed, by file name."""
    return {"prim_ops.pte": _PRIM_OPS.read_bytes()}


def damaged_seeds() -> dict[str, bytes]:
    """Every damaged program of the corpus, by file name."""
    return {p.name: p.read_bytes() for p in sorted((CORPUS / "bad").glob("*.pte"))}


def retyped_seeds() -> dict[str, bytes]:
    """Programs that the kernels can run, by dtype and kind of sizes."""
    seeds = {}
    for case in CASES:
        if len(model_bytes(case)) <= _MOST_BYTES and _runs(case):
            for dtype in sorted(ALL):
                seeds[f"{case}-{dtype.name}.pte"] = _retyped(case, dtype)
            dynamic = _retyped(case, ScalarType.Float, dynamic=True)
            seeds[f"{case}-dynamic.pte"] = dynamic
    return seeds


def _runs(case: str) -> bool:
    """Whether all operators have kernels, and everything lies in one program."""
    known = set(linked_catalog().operators)
    program = read_program(model_bytes(case), file=case)
    return len(program.segments) == 1 and all(
        isinstance(instruction, KernelCall) and method.operators[instruction.operator] in known
        for method in program.methods
        for instruction in method.instructions
    )


def _retyped(case: str, dtype: ScalarType, *, dynamic: bool = False) -> bytes:
    """A program with another dtype for all tensors of floats.

    All offsets are four times as large, so that items of 16 bytes have room.
    """
    program = deepcopy(program_json(case))
    for method in program["execution_plan"]:
        sizes = method["non_const_buffer_sizes"]
        method["non_const_buffer_sizes"] = [_WIDER * size for size in sizes]
        for value in method["values"]:
            if value["val_type"] == "Tensor":
                _retype(value["val"], dtype, dynamic=dynamic)
    constants = program["constant_segment"]
    constants["offsets"] = [_WIDER * offset for offset in constants["offsets"]]
    (segment,) = program["segments"]
    segment["size"] *= _WIDER
    data = read_program(model_bytes(case), file=case).segment_bytes(0)
    return write_program(program, bytes(data) * _WIDER if segment["size"] else None)


def _retype(tensor: dict[str, Any], dtype: ScalarType, *, dynamic: bool) -> None:
    if tensor["scalar_type"] == ScalarType.Float:
        tensor["scalar_type"] = int(dtype)
    place = tensor["allocation_info"]
    if place is not None:
        place["memory_offset_low"] *= _WIDER
        tensor["shape_dynamism"] = int(dynamic)


def main(folder: Path) -> None:
    """Write all seeds to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds = corpus_seeds() | damaged_seeds() | retyped_seeds() | prim_op_seeds()
    for name, data in seeds.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write them")
    main(parser.parse_args().folder)
