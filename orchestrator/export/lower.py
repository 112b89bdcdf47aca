"""From a module to a program: quantize, export, lower. Needs PyTorch, ExecuTorch."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import executorch.kernels.quantized  # noqa: F401  # forms of operators that programs have
import torch
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch.export import export
from torch.utils import _pytree
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from orchestrator.export.agreement import Agreement, difference
from orchestrator.export.bounds import size_bounds, with_least_sizes
from orchestrator.export.decompose import without_leftovers
from orchestrator.export.failure import ExportError
from orchestrator.export.layout import (
    channels_last,
    is_quantized,
    with_contiguous_views,
    with_one_layout,
    with_updates_apart,
)
from orchestrator.export.request import Offered
from orchestrator.export.source import FORWARD, Model, Source
from orchestrator.export.state import (
    WithState,
    mark_state,
    state_of,
    with_explicit_state,
    with_first_names,
    without_marks,
    without_side_effects,
)
from orchestrator.export.unsupported import (
    named_operators,
    with_plain_containers,
    with_plain_outputs,
)
from orchestrator.export.weights import with_constant_weights
from orchestrator.profile.lowering import CORTEX_M, ETHOS_U, XNNPACK

if TYPE_CHECKING:
    from orchestrator.export.request import Request

_T = TypeVar("_T")
_LOWERINGS = "orchestrator.export.lowerings"


def lowering_module(name: str) -> Any:
    """The module of `lowerings` for a lowering."""
    own = "ethos_u" if name in ETHOS_U else name.replace("-", "_")
    return import_module(f"{_LOWERINGS}.{own}")


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add the name of a method to its errors."""
    try:
        yield
    except ExportError as error:
        if name != FORWARD:
            error.notes = (("method", name), *error.notes)
        raise


def _each(model: Model, step: Callable[[str, Source], _T]) -> dict[str, _T]:
    """What a step gives for each method."""
    found = {}
    for name, method in model.methods.items():
        # Methods of one model may share an error's text: its name tells them apart.
        with _named(name):
            found[name] = step(name, method)
    return found


def arranged(model: Model, request: Request) -> Model:
    """The model with example inputs as the lowering wants them; the same values."""
    if request.lowering != CORTEX_M:
        return model

    def step(_: str, method: Source) -> Source:
        is_int8 = request.quantize is not None or is_quantized(method.module)
        return with_one_layout(method) if is_int8 else method

    return replace(model, methods=_each(model, step))


def _has_int_weights(module: Any) -> bool:
    """Whether torchao has quantized weights of a module."""
    return any(
        type(weight).__module__.startswith("torchao.")
        for weight in (*module.parameters(), *module.buffers())
    )


def quantized(model: Model, request: Request) -> tuple[dict[str, Any], list[str]]:
    """The module of each method, quantized if the request says so; warnings.

    Raises:
        ExportError: PyTorch cannot export or quantize it.
    """
    capture = _unquantized if request.quantize is None else _captured
    found = _each(model, lambda _, method: capture(method, request))
    notes = [note for _, notes in found.values() for note in notes]
    modules = {name: module for name, (module, _) in found.items()}
    if request.quantize is not None:
        modules = _with_scales(modules, model, request)
    return modules, list(dict.fromkeys(notes))


def _unquantized(method: Source, request: Request) -> tuple[Any, list[str]]:
    if request.lowering == CORTEX_M and is_quantized(method.module):
        return _captured(method, request)
    # XNNPACK's partitioner matches `dequantize_affine` itself.
    if request.lowering != XNNPACK and _has_int_weights(method.module):
        # It gives PyTorch an operator.
        from orchestrator.export.int_weights import with_int_weights  # noqa: PLC0415

        graph, notes = _captured(method, request)
        # Tensors of torchao's classes become integers, scales and zero points.
        # An empty table decomposes nothing, but takes tensor subclasses apart:
        # torchao's Int8WeightOnlyConfig hides integers behind one.
        plain = _exported(replace(method, module=graph)).run_decompositions({})
        return with_int_weights(plain.module(check_guards=False)), notes
    return method.module, []


def _quantizing() -> AbstractContextManager[None]:
    return ExportError.around("cannot-quantize", "PyTorch cannot quantize the model")


def _with_scales(graphs: dict[str, Any], model: Model, request: Request) -> dict[str, Any]:
    """Quantized graphs of all methods, which share their state."""
    module = next(iter(model.methods.values())).module
    changed = {name: state_of(graph) for name, graph in graphs.items()}
    names = set().union(*changed.values())
    # A copy of the values before the first call, which is what the program begins with.
    state = {n: v.clone() for n, v in module.named_buffers() if n in names}

    def prepare(name: str, method: Source) -> Any:
        graph = graphs[name]
        if state:
            explicit = with_explicit_state(method, changed[name], state)
            graph, _ = _captured(method, request, explicit)
        with _quantizing():
            quantizer = lowering_module(request.lowering).quantizer(request)
            return prepare_pt2e(with_constant_weights(graph), quantizer)

    def convert(name: str, _: Source) -> Any:
        with _quantizing():
            graph = convert_pt2e(prepared[name])
        # convert_pt2e folds buffers that it takes for constants: state is an input of
        # the graph while scales are chosen, and becomes a buffer again here (state.py).
        return WithState(graph, state) if state else graph

    prepared, now = _each(model, prepare), dict(state)
    for name, sample in model.calibration:
        with (
            _named(name),
            ExportError.around("bad-callable", "the model cannot run a calibration sample"),
        ):
            given = copy.deepcopy(sample)
            if not state:
                prepared[name](*given)
            else:
                # Calibration runs like the device: over one state, in the order of the
                # samples.
                now |= prepared[name](now, *given)[1]
    return _each(model, convert)


def _captured(
    method: Source, request: Request, explicit: Source | None = None
) -> tuple[Any, list[str]]:
    """The graph of a method, with the layout that the lowering wants; warnings."""
    # Other backends move images themselves: Ethos-U through TOSA, XNNPACK in its
    # delegate.
    if request.lowering != CORTEX_M:
        return _graph(method, explicit), []
    # A module that cannot work in channels-last is captured as it is, with a warning
    # (decision 0018).
    with suppress(ExportError):
        with channels_last(method) as notes:
            graph = _graph(method, explicit)
        source = explicit or method
        forms = (_run(copy.deepcopy(m), source) for m in (graph, source.module))
        # A module may change a view of an image in place: there was a copy.
        # Compared at once, before scales: a wrong layout would look like a bad
        # quantization.
        if difference(graph, *forms) is None:
            return graph, notes
    note = "its images keep their layout: it does not work in channels-last"
    return _graph(method, explicit), [note]


def _graph(method: Source, explicit: Source | None) -> Any:
    if explicit is not None:
        return without_side_effects(_exported(explicit))
    return _exported(method).module(check_guards=False)


def _exported(method: Source) -> Any:
    with ExportError.around("cannot-export", "torch.export failed"):
        program = export(
            method.module,
            copy.deepcopy(method.inputs),
            dynamic_shapes=method.dynamic_shapes,
            # Without TorchDynamo, which refuses more models.
            strict=False,
        )
        return with_first_names(program)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A program.

    Args:
        manager: ExecuTorch's program manager, in whose `buffer` the program is.
        decomposed: Calls of operators without a kernel that were replaced, by operator.
        asked: By operator: whether it has a kernel.
        bounds: By method: sizes that inputs may have, as `SizeBound` has them.
        uncompared: A warning if values are not compared with PyTorch's.
    """

    manager: Any
    decomposed: Mapping[str, int]
    asked: Mapping[str, bool]
    bounds: Mapping[str, list[dict[str, int]]]
    uncompared: list[str]


def lowered(
    modules: Mapping[str, Any],
    model: Model,
    request: Request,
    outputs: Mapping[str, list[Any]] | None = None,
) -> Lowered:
    """The program of a model.

    Args:
        modules: The module of each method, quantized or not.
        model: Gives the example inputs.
        request: How to lower it.
        outputs: What PyTorch gives for them, to compare the program with.

    Raises:
        ExportError: PyTorch cannot export it, ExecuTorch cannot lower it, or the
            program gives something else.
    """
    captured = _each(model, lambda n, m: _exported(replace(m, module=modules[n])))
    bounds = {name: size_bounds(program) for name, program in captured.items()}
    # A method that only reads a buffer would have it folded into weights by its own
    # lowering.
    marked = mark_state(captured) if len(captured) > 1 else {}
    decomposed: Counter[str] = Counter()
    offered = Offered(request.offered or ())
    edges, programs, agreement = [], {}, Agreement()
    for name, whole in captured.items():
        with _named(name), _lowering(request, whole):
            # Each method is lowered by itself: a lowering that fails names its method,
            # and managers are joined below.
            edges.append(lowering_module(request.lowering).lowered(whole, request))
            program = edges[-1].exported_program()
            if marked:
                without_marks(program, marked[name])
            if request.offered is not None:
                program, calls = without_leftovers(program, offered)
                decomposed += calls
            programs[name] = program = with_contiguous_views(program)
            if outputs is not None:
                inputs = model.methods[name].inputs
                agreement.check(name, program, whole, inputs, outputs[name])
    with _lowering(request, *captured.values()):
        # EdgeProgramManager (exir/program/_program.py, 1.5.1) has no way to add a
        # method: its fields are filled here. `_named_data_store` has the weights that
        # delegates name; without the merge, programs would name data that are not
        # there.
        edge, *others = edges
        for other in others:
            data = other._named_data_store.get_named_data_store_output()  # noqa: SLF001
            edge._named_data_store.merge_named_data_store(data)  # noqa: SLF001
        edge._edge_programs = programs  # noqa: SLF001
        edge._config_methods = model.constants or None  # noqa: SLF001
        for name, program in programs.items():
            # All changes of metadata come after the comparison with PyTorch, and right
            # before memory is planned.
            with_least_sizes(program, bounds[name])
            with_plain_containers(program)
            with_updates_apart(program)
        return Lowered(
            manager=edge.to_executorch(_with_state(programs)),
            decomposed=decomposed,
            asked=offered.asked,
            bounds=bounds,
            uncompared=agreement.warnings(),
        )


@contextmanager
def _lowering(request: Request, *captured: Any) -> Iterator[None]:
    with (
        ExportError.around(
            "cannot-lower",
            f"ExecuTorch cannot lower the model for {request.lowering}",
            "remove the operator from the model, choose another lowering, or register"
            " the out variant of your custom operator",
        ),
        named_operators(captured, request.offered or ()),
    ):
        yield


def _with_state(programs: Mapping[str, Any]) -> ExecutorchBackendConfig:
    """Keep the initial values of buffers that methods change, and share the buffers.

    Otherwise ExecuTorch writes their sizes only, and the first call reads whatever the
    memory holds.
    """
    signatures = [program.graph_signature for program in programs.values()]
    changed = {b for s in signatures for b in s.buffers_to_mutate.values()}
    buffers = {pair for s in signatures for pair in s.inputs_to_buffers.items()}
    names = sorted(name for name, buffer in buffers if buffer in changed)
    # Without this pass (exir/passes/init_mutable_pass.py) ExecuTorch stores no initial
    # values of buffers that a method changes: a program begins with whatever lies in
    # its memory. It looks for names as parts of placeholders, so whole names are given.
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(names)] if names else [])
    if names and len(programs) > 1:
        # Each method gets buffers of its own otherwise: `decode` would read a cache
        # that `prefill` never wrote.
        config.memory_planning_pass = MemoryPlanningPass(share_mutable_buffers=True)
    return config


def with_reference(
    modules: Mapping[str, Any], model: Model
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Modules with outputs that programs can have, and PyTorch's for the examples."""
    # A copy: the program must have the initial state, which a call may change.
    # One deepcopy of all methods: modules that share a buffer share its copy.
    copies = copy.deepcopy(dict(modules))
    outputs = _each(model, lambda name, method: _run(copies[name], method))
    plain = _each(model, lambda n, _: with_plain_outputs(modules[n], outputs[n]))
    return plain, outputs


def _run(module: Any, method: Source) -> list[Any]:
    with (
        ExportError.around("bad-callable", "the model cannot run its example inputs"),
        torch.no_grad(),
    ):
        found = _pytree.tree_leaves(module(*copy.deepcopy(method.inputs)))
        return list(copy.deepcopy(found))  # a later call may change a buffer among them
