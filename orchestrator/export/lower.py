"""From a module to a program: quantize, export, lower. Needs PyTorch, ExecuTorch."""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import executorch.kernels.quantized  # noqa: F401  # forms of operators that programs have
import torch
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch.export import export
from torch.utils import _pytree
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from orchestrator.export.agreement import check_agreement
from orchestrator.export.bounds import size_bounds
from orchestrator.export.decompose import without_leftovers
from orchestrator.export.failure import ExportError
from orchestrator.export.layout import channels_last, is_quantized, with_one_layout
from orchestrator.export.offered import Offered
from orchestrator.export.unsupported import named_operators, with_plain_outputs
from orchestrator.export.views import with_contiguous_views
from orchestrator.export.weights import with_constant_weights
from orchestrator.profile.lowering import CORTEX_M, ETHOS_U, PORTABLE, XNNPACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.export.request import Request
    from orchestrator.export.source import Source

_MOST_ERROR = 1e-3
"""Tolerance for another order of the same sums, as a part of the largest result."""
_LOWERINGS = "orchestrator.export.lowerings"


def lowering_module(name: str) -> Any:
    """The module of `lowerings` for a lowering."""
    own = "ethos_u" if name in ETHOS_U else name.replace("-", "_")
    return import_module(f"{_LOWERINGS}.{own}")


def arranged(source: Source, request: Request) -> Source:
    """The model with example inputs as the lowering wants them; the same values."""
    is_int8 = request.quantize is not None or is_quantized(source.module)
    if request.lowering != CORTEX_M or not is_int8:
        return source
    return with_one_layout(source)


def _has_int_weights(module: Any) -> bool:
    """Whether torchao has quantized weights of a module."""
    return any(
        type(weight).__module__.startswith("torchao.")
        for weight in (*module.parameters(), *module.buffers())
    )


def quantized(source: Source, request: Request) -> tuple[Any, list[str]]:
    """The module that is lowered, quantized if the request says so; warnings.

    Raises:
        ExportError: PyTorch cannot export or quantize it.
    """
    if request.quantize is None:
        if request.lowering == CORTEX_M and is_quantized(source.module):
            return _captured(source, request)
        if request.lowering != XNNPACK and _has_int_weights(source.module):
            # It gives PyTorch an operator.
            from orchestrator.export.int_weights import (  # noqa: PLC0415
                with_int_weights,
            )

            graph, notes = _captured(source, request)
            return with_int_weights(graph), notes
        return source.module, []
    quantizer = lowering_module(request.lowering).quantizer(request)
    graph, notes = _captured(source, request)
    with ExportError.around("cannot-quantize", "PyTorch cannot quantize the model"):
        prepared = prepare_pt2e(with_constant_weights(graph), quantizer)
    with ExportError.around(
        "bad-callable", "the model cannot run a calibration sample"
    ):
        for sample in source.calibration:
            prepared(*copy.deepcopy(sample))
    with ExportError.around("cannot-quantize", "PyTorch cannot quantize the model"):
        return convert_pt2e(prepared), notes


def _captured(source: Source, request: Request) -> tuple[Any, list[str]]:
    """The graph of the module, with the layout that the lowering wants; warnings."""
    if request.lowering != CORTEX_M:
        return _graph(source), []
    with suppress(ExportError):
        with channels_last(source) as notes:
            graph = _graph(source)
        if _computes_the_same(graph, source):
            return graph, notes
    note = "its images keep their layout: it does not work in channels-last"
    return _graph(source), [note]


def _graph(source: Source) -> Any:
    return _exported(source.module, source).module(check_guards=False)


def _computes_the_same(graph: Any, source: Source) -> bool:
    """Whether a graph and its module give the same outputs for the example.

    It does not where the module changes a view of an image in place: there was a copy.
    """
    for got, want in zip(
        reference(graph, source), reference(source.module, source), strict=True
    ):
        if isinstance(want, torch.Tensor) and want.numel():
            bound = _MOST_ERROR * float(want.abs().max())
            if not torch.allclose(got, want, rtol=0.0, atol=bound, equal_nan=True):
                return False
    return True


def _exported(module: Any, source: Source) -> Any:
    with ExportError.around("cannot-export", "torch.export failed"):
        return export(
            module,
            copy.deepcopy(source.inputs),
            dynamic_shapes=source.dynamic_shapes,
            strict=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A program.

    Args:
        manager: ExecuTorch's program manager, in whose `buffer` the program is.
        decomposed: Calls of operators without a kernel that were replaced, by operator.
        asked: By operator: whether it has a kernel.
        bounds: Sizes that inputs may have, as `SizeBound` has them.
    """

    manager: Any
    decomposed: Mapping[str, int]
    asked: Mapping[str, bool]
    bounds: list[dict[str, int]]


def lowered(
    module: Any, source: Source, request: Request, outputs: list[Any] | None = None
) -> Lowered:
    """The program of a module.

    Args:
        module: The module, quantized or not.
        source: Gives the example inputs.
        request: How to lower it.
        outputs: What the module gives for them, to compare the program with.

    Raises:
        ExportError: PyTorch cannot export it, ExecuTorch cannot lower it, or the
            program gives something else.
    """
    captured = program = _exported(module, source)
    bounds = size_bounds(program)
    with (
        ExportError.around(
            "cannot-lower",
            f"ExecuTorch cannot lower the model for {request.lowering}",
            "remove the operator from the model, choose another lowering, or register"
            " the out variant of your custom operator",
        ),
        named_operators(captured, request.offered or ()),
    ):
        edge = lowering_module(request.lowering).lowered(program, request)
        program = edge.exported_program()
        decomposed: Mapping[str, int] = {}
        offered = Offered(request.offered or ())
        if request.offered is not None:
            program, decomposed = without_leftovers(program, offered)
        program = with_contiguous_views(program)
        edge._edge_programs["forward"] = program  # noqa: SLF001
        if outputs is not None:
            check_agreement(program, captured, source.inputs, outputs)
        return Lowered(
            manager=edge.to_executorch(_with_initial_state(program)),
            decomposed=decomposed,
            asked=offered.asked,
            bounds=bounds,
        )


def _with_initial_state(program: Any) -> ExecutorchBackendConfig:
    """Keep the initial values of buffers that the model changes.

    Otherwise ExecuTorch writes their sizes only, and the first call reads whatever the
    memory holds.
    """
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    names = [n for n, name in signature.inputs_to_buffers.items() if name in changed]
    passes = [InitializedMutableBufferPass(names)] if names else []
    return ExecutorchBackendConfig(passes=passes)


def with_reference(module: Any, source: Source) -> tuple[Any, list[Any]]:
    """The module with outputs that programs can have, and PyTorch's for the example."""
    outputs = reference(module, source)
    return with_plain_outputs(module, outputs), outputs


def reference(module: Any, source: Source) -> list[Any]:
    """PyTorch's outputs for the example inputs: flat, tensors and numbers."""
    with (
        ExportError.around("bad-callable", "the model cannot run its example inputs"),
        torch.no_grad(),
    ):
        # A copy: the program must have the initial state, which a call may change.
        found = copy.deepcopy(module)(*copy.deepcopy(source.inputs))
    return list(_pytree.tree_leaves(found))


def left_over(program: Lowered, request: Request) -> list[str]:
    """Warnings about heavy operators that the lowering did not take."""
    if request.lowering == PORTABLE:
        return []
    plan = program.manager.executorch_program.execution_plan[0]
    if request.lowering != CORTEX_M and not plan.delegates:
        return [f"no part of the model was lowered for {request.lowering}"]
    names = [f"{o.name}.{o.overload}".removesuffix(".") for o in plan.operators]
    calls = Counter(
        names[instruction.instr_args.op_index]
        for chain in plan.chains
        for instruction in chain.instructions
        if hasattr(instruction.instr_args, "op_index")
    )
    found = [f"{n} ({c})" for n, c in sorted(calls.items()) if n.startswith(_HEAVY)]
    if not found:
        return []
    return [f"{request.lowering} left to portable kernels: {', '.join(found)}"]


_HEAVY = (
    *("aten::convolution", "aten::linear", "aten::addmm", "aten::mm", "aten::bmm"),
    *("aten::avg_pool2d", "aten::max_pool2d"),
)
"""Operators for which users choose a backend."""
