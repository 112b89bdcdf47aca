"""Products made of corpus cases, and their arrays as numpy reads them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrator.memory.plan import MemoryPlan, MethodMemory, ModelMemory
from orchestrator.program.reader import read_program
from orchestrator.running.product import Product, product_json, read_product
from orchestrator.targets.cores import Target, resolve_target
from tests.conftest import CORPUS, model_bytes


def host() -> Target:
    return resolve_target(cpu="host", isa=None, board=None, toolchain=None, optimize="size")


def product_text(cases: dict[str, str], target: Target) -> str:
    """`product.json` of a product with these models: case by model name."""
    programs = {model: read_program(model_bytes(case), file=case) for model, case in cases.items()}
    memory = MemoryPlan(
        models=tuple(
            ModelMemory(
                model=model,
                program_bytes=program.size_bytes,
                methods=tuple(
                    MethodMemory(
                        model=model,
                        method=method.name,
                        arenas=(),
                        state_bytes=100 * len(method.values),
                        input_bytes=(),
                        output_bytes=(),
                    )
                    for method in program.methods
                ),
            )
            for model, program in programs.items()
        )
    )
    return product_json(profile="test", programs=programs, memory=memory, target=target)


@cache
def product_of(case: str) -> Product:
    """A product with one model, named `m`."""
    return read_product(product_text({"m": case}, host()))


@cache
def case_text(case: str) -> str:
    return (CORPUS / case / "case.json").read_text()


def case_document(case: str) -> Any:
    return json.loads(case_text(case))


def load(case: str, file: str) -> npt.NDArray[Any]:
    loaded: npt.NDArray[Any] = np.load(CORPUS / case / file)
    return loaded
