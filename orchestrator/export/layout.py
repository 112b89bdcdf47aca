"""Images in channels-last layout, for int8 kernels of Cortex-M. Needs PyTorch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch
from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass, ProxyValue
from executorch.exir.program._program import _transform
from torch.fx import GraphModule
from torch.fx.node import Node
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from orchestrator.core.layout import layout_of
from orchestrator.export import forms
from orchestrator.export.one_row import Lines, is_by_channel

if TYPE_CHECKING:
    from orchestrator.export.source import Source

_CONTIGUOUS = (0, 1, 2, 3)
_CHANNELS_LAST = forms.CHANNELS_LAST
_RANK = len(_CONTIGUOUS)
_IMAGE_OPERATORS = frozenset(
    {
        *("conv2d", "conv_transpose2d"),
        *("avg_pool2d", "max_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"),
    }
)
"""Operators whose int8 kernels take images in channels-last layout only."""
# Both lists are by name, as TorchFunctionMode sees them: what is missing gives a
# program that the build rejects, never one that reorders items (decision 0018).
_CONTIGUOUS_OPERATORS = frozenset(
    {
        *("view", "view_as", "reshape", "reshape_as", "flatten", "unflatten"),
        *("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold"),
        *("stack", "unsqueeze", "repeat", "matmul", "__matmul__", "einsum", "linear"),
        *("layer_norm", "group_norm", "scaled_dot_product_attention"),
    }
)
"""Operators that read the items of an image in the order they lie in.

ExecuTorch turns them into views of bytes, which is correct for contiguous tensors only.
"""
_VIEWS = frozenset(
    {
        *("__getitem__", "slice", "narrow", "chunk", "split", "split_with_sizes"),
        *("tensor_split", "permute", "transpose", "swapaxes", "movedim", "expand"),
        *("expand_as", "broadcast_to"),
    }
)
"""Operators that return views; in ExecuTorch's programs these are contiguous copies.

So are views of lines or numbers that look like images in channels-last layout.
"""
_SAVE = ".to(memory_format=torch.channels_last)"


def is_quantized(module: Any) -> bool:
    """Whether a module already has scales, from `convert_pt2e`."""
    return any(
        getattr(node.target, "namespace", "") == "quantized_decomposed"
        for part in module.modules()
        if isinstance(part, GraphModule)
        for node in part.graph.nodes
    )


# ExecuTorch's passes choose kernels by strides, which say nothing here.
def with_one_layout(source: Source) -> Source:
    """The source with example images of one channel or pixel in channels-last strides.

    Their bytes are the same in both layouts, but strides determine those of the
    results.
    """
    return replace(
        source,
        inputs=_pytree.tree_map(
            lambda leaf: (
                leaf.to(memory_format=torch.channels_last)
                if _is_image(leaf) and _has_one_layout(leaf)
                else leaf
            ),
            source.inputs,
        ),
    )


@contextmanager
def channels_last(source: Source) -> Iterator[list[str]]:
    """Give the operators of a module channels-last images while it is captured.

    Callers of the program keep the layout of the example inputs: images are copied
    where they enter and leave the module, and inside where the module itself makes
    them contiguous.

    Args:
        source: A model; the block captures its module.

    Yields:
        Warnings about copies in every run, with how to avoid them; complete after the
        block.
    """
    notes: list[str] = []
    # Hooks, not a wrapper module: names of parameters and buffers stay.
    leaves = _pytree.tree_leaves(source.inputs)
    copied = [
        at for at, leaf in enumerate(leaves) if _is_image(leaf) and not _is_channels_last(leaf)
    ]

    def enter(_: Any, args: Any) -> Any:
        values, spec = _pytree.tree_flatten(args)
        for at in copied:
            values[at] = _to_channels_last(values[at])
        return _pytree.tree_unflatten(values, spec)

    inside = _ImageOperators()
    saved = _is_saved(source, copied)

    def leave(_: Any, __: Any, outputs: Any) -> Any:
        outputs = _pytree.tree_map(inside.lines.settled, outputs)
        # A model that the user saved in channels-last has outputs in it; others keep
        # PyTorch's default.
        return outputs if saved else _pytree.tree_map(_to_contiguous, outputs)

    hooks = [source.module.register_forward_hook(leave)]
    if copied:
        notes.append(_border_note(copied))
        # Removed in any case: the module is captured again for other methods, and run
        # as the reference.
        hooks.append(source.module.register_forward_pre_hook(enter))
    try:
        with inside:
            yield notes
    finally:
        for hook in hooks:
            hook.remove()
    if inside.copied:
        notes.append(_inside_note(inside.copied))


def _is_saved(source: Source, copied: list[int]) -> bool:
    """Whether inputs and outputs already are channels-last images."""
    images = [leaf for leaf in _pytree.tree_leaves(source.inputs) if _is_image(leaf)]
    if copied or not images:
        return False
    # For images of one channel or one pixel only the module shows the layout.
    images = [image for image in images if not _has_one_layout(image)]
    weights = [weight for weight in source.module.parameters() if _is_image(weight)]
    return bool(images) or any(w.dim_order() == _CHANNELS_LAST for w in weights)


class _ImageOperators(TorchFunctionMode):  # type: ignore[misc]  # PyTorch's is Any
    """Operators on images get them in channels-last layout; counts the copies."""

    def __init__(self) -> None:
        super().__init__()
        self.copied: Counter[str] = Counter()
        self.lines = Lines()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function."""
        del types
        name = getattr(func, "__name__", "").partition(".")[0]
        # Lines first: their operators become those of images, and come here again by
        # that name.
        result = self.lines.called(name, func, args, kwargs or {})
        if result is not NotImplemented:
            return result
        args, kwargs = _pytree.tree_map(self.lines.settled, (args, kwargs or {}))
        if name == "pad":
            func = forms.pad
        elif name == "glu" and args and _is_image(args[0]) and _is_channels_last(args[0]):
            func = forms.glu
        form = _form_of_mean(name, args, kwargs)
        is_of_images = name in _IMAGE_OPERATORS or is_by_channel(name, (*args, *kwargs.values()))
        if form or (is_of_images and args and _is_image(args[0])):
            if not _is_channels_last(args[0]):
                self.copied[name] += 1
                args = (_to_channels_last(args[0]), *args[1:])
            elif _is_one(args[0].shape[1]) and args[0].dim_order() != _CHANNELS_LAST:
                # No copy in the program, but results get their layout from strides.
                args = (args[0].clone(memory_format=torch.channels_last), *args[1:])
            func = form or getattr(forms, name, func)
        elif name in _CONTIGUOUS_OPERATORS:
            args = _pytree.tree_map(_to_contiguous, args)
        result = func(*args, **kwargs)
        if name in _VIEWS or name in _CONTIGUOUS_OPERATORS:
            return _pytree.tree_map(dense, result)
        return result


def _form_of_mean(name: str, args: Any, kwargs: Any) -> Any:
    """What gives a mean or sum of an image; None if there is no such form."""
    forms_of = {"mean": forms.mean, "sum": forms.total}
    if name not in forms_of or not args or not _is_image(args[0]):
        return None
    dims = args[1] if len(args) > 1 else kwargs.get("dim")
    dims = [dims] if isinstance(dims, int) else dims
    if not dims or not {d % _RANK for d in dims} <= {1, 2, 3} or "dtype" in kwargs:
        return None
    if name == "mean" and {d % _RANK for d in dims} == {2, 3}:
        # DecomposeMeanPass of backends/cortex_m/passes.
        return torch.mean  # ExecuTorch has it as a pooling
    is_known = all(isinstance(size, int) for size in args[0].shape[1:])
    return forms_of[name] if is_known else None


def _is_image(value: Any) -> bool:
    """Whether a value is a tensor [N, C, H, W] of floating point numbers."""
    return isinstance(value, torch.Tensor) and value.ndim == _RANK and value.is_floating_point()


def _is_channels_last(image: Any) -> bool:
    return _has_one_layout(image) or image.dim_order() == _CHANNELS_LAST


def _has_one_layout(image: Any) -> bool:
    """Whether it has one channel or pixel: both layouts have the same bytes."""
    _, channels, height, width = image.shape
    # `dim_order()` follows the strides, which differ though the bytes do not.
    return _is_one(channels) or (_is_one(height) and _is_one(width))


def _is_one(size: Any) -> bool:
    # Changing sizes are symbols; comparing one here would fix its value.
    return isinstance(size, int) and size == 1


def _to_channels_last(image: Any) -> Any:
    return image.contiguous(memory_format=torch.channels_last)


def _to_contiguous(value: Any) -> Any:
    if not _is_image(value) or value.dim_order() == _CONTIGUOUS:
        return value
    return value.contiguous()


def dense(value: Any) -> Any:
    """A view without gaps: a copy in channels-last layout if that is its layout."""
    if _is_image(value) and not _has_one_layout(value) and _is_channels_last(value):
        return value.clone(memory_format=torch.channels_last)
    return value


def _border_note(copied: list[int]) -> str:
    names = ", ".join(map(str, copied))
    what = f"inputs {names} are" if len(copied) > 1 else f"input {names} is"
    return (
        f"{what} in PyTorch's default layout, and each run copies to channels-last; to"
        f" avoid the copy, write {_SAVE} after the module and its example inputs"
    )


def _inside_note(copied: Counter[str]) -> str:
    names = ", ".join(f"{name} ({count})" for name, count in sorted(copied.items()))
    return (
        f"each run copies to channels-last before {names}; to avoid the copies, keep"
        " what the model computes there in channels-last layout"
    )


# Views of what has another order, or is written, made right. Needs ExecuTorch.

_VIEW = ops.edge.aten.view_copy.default
_CLONE = ops.edge.dim_order_ops._clone_dim_order.default  # noqa: SLF001
_COPY = ops.edge.dim_order_ops._to_dim_order_copy.default  # noqa: SLF001
_UPDATES: Final = ("BUFFER_MUTATION", "USER_INPUT_MUTATION")


def with_contiguous_views(program: Any) -> Any:
    """An edge program that views no tensor whose items lie in another order.

    ExecuTorch gives a view the memory of its base and forgets the order of dimensions
    that the base has, as an image in channels-last does. Here the base is copied to the
    default order first where that matters.

    Args:
        program: An exported program in the edge dialect.

    Returns:
        The same object if nothing was done.
    """
    if not any(
        _is_reordered(node.args[0].meta["val"], node.meta["val"])
        for part in program.graph_module.modules()
        if isinstance(part, GraphModule)
        for node in part.graph.nodes
        if node.target is _VIEW
    ):
        return program
    return _transform(program, _Contiguous())


class _Contiguous(ExportPass):  # type: ignore[misc]  # ExecuTorch's is Any
    """Copies the base of a view to the default order of dimensions."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """Call an operator."""
        if op is not _VIEW or not isinstance(args[0], ProxyValue):
            return super().call_operator(op, args, kwargs, meta)
        values = _pytree.tree_map_only(ProxyValue, lambda value: value.data, args)
        if _is_reordered(values[0], op(*values)):
            # `_clone_dim_order` of ExecuTorch copies to a dim order; aten::clone has a
            # memory format, which edge programs do not.
            order = {"dim_order": list(range(values[0].dim()))}
            base = super().call_operator(_CLONE, args[:1], order, meta)
            args = (base, *args[1:])
        return super().call_operator(op, args, kwargs, meta)


def _is_reordered(base: Any, view: Any) -> bool:
    """Whether a view that shares the bytes of its base has its items elsewhere."""
    tensors = (base, view)
    if all(tensor.dim_order() == tuple(range(tensor.dim())) for tensor in tensors):
        return False
    # Unknown sizes may all be 1 or not: a copy too many is right.
    if not all(isinstance(size, int) for tensor in tensors for size in tensor.shape):
        return True
    one, other = (layout_of(tensor.shape, tensor.dim_order()) for tensor in tensors)
    return one != other


def without_equal_copies(graph: Any) -> None:
    """Leave out copies to another layout that is the same one, as of one channel.

    ExecuTorch names the layout of such a result in two ways, and kernels want one.

    Args:
        graph: Of an edge program; changed in place.
    """
    for node in list(graph.nodes):
        if node.target not in (_CLONE, _COPY) or node.kwargs.get("dim_order") is None:
            continue
        given, found = (n.meta["val"] for n in (node.args[0], node))
        sizes = found.shape
        if given.dtype is not found.dtype or not all(isinstance(n, int) for n in sizes):
            continue
        one, other = (layout_of(sizes, tensor.dim_order()) for tensor in (given, found))
        # Results of other operators have the layout that their inputs have.
        names = (getattr(user.target, "__name__", "") for user in node.users)
        # Kernels of cortex_m read images through strides; portable ones take the dim
        # order of their inputs for the output, which a missing copy would change.
        if one == other and all(name.startswith("cortex_m.") for name in names):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def with_updates_apart(program: Any) -> None:
    """Copy what is read from a buffer or an input before a method writes it.

    At the end of a method ExecuTorch writes new values of buffers and inputs one after
    the other. It takes a new value that is another buffer for one in place, and drops
    the write; and what an output shows of a buffer would be its new value.

    Args:
        program: An exported program in the edge dialect.

    Source: ExecuTorch 1.5 `exir/passes/insert_write_back_for_buffers_pass.py`.
    """
    signature, graph = program.graph_signature, program.graph
    names = {buffer: name for name, buffer in signature.inputs_to_buffers.items()}
    specs = signature.output_specs
    targets = [
        names.get(spec.target, spec.target) if spec.kind.name in _UPDATES else "" for spec in specs
    ]
    if not any(targets):
        return
    (output,) = graph.find_nodes(op="output")
    (results,) = output.args
    found = []
    for node, spec, target in zip(results, specs, targets, strict=True):
        # Views share the memory of their base in ExecuTorch's programs
        # (ReplaceViewCopyWithViewPass): a view of a buffer that is written later would
        # read the new value.
        base = node
        while isinstance(base, Node) and base.target is _VIEW:
            base, *_ = base.args
        is_given = isinstance(base, Node) and base.op == "placeholder"
        if is_given and node.name != target and (target or base.name in targets):
            with graph.inserting_before(output):
                copied = graph.call_function(_CLONE, (node,))
            copied.meta = {**node.meta, "val": node.meta["val"].clone()}
            spec.arg = replace(spec.arg, name=copied.name)
            found.append(copied)
        else:
            found.append(node)
    output.args = (tuple(found),)
    program.graph_module.recompile()
