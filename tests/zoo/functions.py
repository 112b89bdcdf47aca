"""Single functions and modules of PyTorch's public namespaces, a program each.

    python -m tests.zoo.functions

prints them with their inputs. Nothing here is chosen by name: the list is every module
of `torch.nn`, and everything of `torch.nn.functional`, `torch` and `torch.Tensor` that
is documented and that PyTorch lists as overridable. A function is taken if small inputs
exist with which PyTorch computes dense, real tensors, the same in every call, and which
it does not change. A parameter gets the values that its name suggests.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from torch import nn, overrides
from torch.utils import _pytree

from tests.zoo.net import MODELS, Net

SHAPES = (*((2, 4, 8, 8), (2, 4, 8), (2, 4, 4), (2, 8), (4, 4), (4,)), (1, 4, 4, 8, 8))
"""Of the input; the first that works is taken."""
MOST_TRIES = 600
"""Combinations of arguments, for one function."""
INPUTS = frozenset(
    {
        *("input", "self", "x", "tensor", "query", "src", "a", "condition", "grad"),
        *("input1", "x1", "anchor", "mat", "data"),
    }
)
"""Names of the parameter that is the float input."""
SAME = "same"
UNIT = "unit"
CLASSES = "classes"
INDICES = "indices"
MASK = "mask"
VECTOR = "vector"
POSITIVE = "positive"
SQUARE = "square"
LIST = "list"
GRID = "grid"
WEIGHTS = {
    "filters 1": (4, 4, 3),
    "filters 2": (4, 4, 3, 3),
    "filters 3": (4, 4, 3, 3, 3),
    "rows": (5, 8),
    "table": (9, 8),
}
"""Sizes of weights."""


def _grid(shape: tuple[int, ...]) -> Any:
    """Places in an image, for `grid_sample`."""
    axes = [torch.linspace(-1, 1, 5)] * max(len(shape) - 2, 1)
    grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    return grid.expand(shape[0], *grid.shape).clone()


TENSORS: dict[str, Callable[[tuple[int, ...]], Any]] = {
    SAME: torch.randn,
    UNIT: torch.rand,
    CLASSES: lambda shape: torch.arange(shape[0]) % 2,
    INDICES: lambda shape: torch.randint(0, 2, shape),
    MASK: lambda shape: torch.randn(shape) > 0,
    VECTOR: lambda _: torch.randn(4),
    POSITIVE: lambda _: torch.linspace(0.5, 1.5, 4),
    SQUARE: lambda _: torch.randn(4, 4),
    LIST: lambda shape: [torch.randn(shape), torch.randn(shape)],
    GRID: _grid,
    **{
        name: partial(lambda sizes, _: torch.randn(sizes), sizes) for name, sizes in WEIGHTS.items()
    },
}
"""By kind: makes a tensor, or a list of them, for an input of that shape."""
VALUES: dict[str, tuple[Any, ...]] = {
    # Sizes of layers.
    **dict.fromkeys(("in_features", "input_size", "d_model", "embed_dim"), (8,)),
    **dict.fromkeys(("in1_features", "in2_features", "embedding_dim"), (8,)),
    **dict.fromkeys(("out_features", "hidden_size", "num_embeddings"), (8,)),
    **dict.fromkeys(("in_channels", "num_channels", "num_features"), (4,)),
    **dict.fromkeys(("out_channels", "channels"), (4,)),
    **dict.fromkeys(("nhead", "num_heads", "num_groups", "groups"), (2,)),
    **dict.fromkeys(("upscale_factor", "downscale_factor", "kernel_size"), (2,)),
    **dict.fromkeys(("lower",), (0.1,)),
    **dict.fromkeys(("upper", "eps", "lambd", "negative_slope", "p"), (0.5,)),
    "dim_feedforward": (16,),
    "num_layers": (1,),
    "n_classes": (12,),
    "cutoffs": ([4, 8],),
    "encoder_layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16),),
    "decoder_layer": (lambda: nn.TransformerDecoderLayer(8, 2, 16),),
    "normalized_shape": ([8], [8, 8]),
    "unflattened_size": ((2, 2),),
    "output_size": (2, (2, 2), (8, 8), (16, 16)),
    "padding": (1, "valid"),
    "pad": ([1, 1],),
    "size": ((2, 2), (8,), (4, 4, 4), (1, 4, 4, 4), 2),
    # Numbers.
    **dict.fromkeys(("dim", "axis", "k", "diagonal"), (1, 0)),
    **dict.fromkeys(("dim0", "axis0", "start_dim", "start", "storage_offset"), (0,)),
    **dict.fromkeys(("dim1", "axis1", "end_dim", "length", "step", "n", "N"), (1,)),
    **dict.fromkeys(("chunks", "repeats", "split_size_or_sections", "sections"), (2,)),
    **dict.fromkeys(("indices_or_sections", "groups", "num_samples", "reps"), (2, (2,))),
    **dict.fromkeys(("min", "threshold", "fill_value", "alpha"), (0.5,)),
    **dict.fromkeys(("max", "maxnorm", "exponent", "beta"), (2.0, SAME)),
    **dict.fromkeys(("momentum", "epsilon", "factor"), (0.1,)),
    **dict.fromkeys(("training", "train", "use_input_stats", "cudnn_enabled"), (False,)),
    **dict.fromkeys(("align_corners", "keepdim", "largest", "full"), (False,)),
    **dict.fromkeys(("log_input", "log_target", "ceil_mode"), (False,)),
    **dict.fromkeys(("interpolation_mode", "padding_mode", "reduction"), (0, "mean")),
    **dict.fromkeys(("mode",), (1,)),
    **dict.fromkeys(("shape", "sizes"), ((2, -1), (2, 2), (4, 4))),
    **dict.fromkeys(("dims", "axes"), ((0,), (0, 1), (1, 0), (2, 1, 0), (0, 2, 3, 1))),
    **dict.fromkeys(("source", "src_dim"), (0, SAME)),
    **dict.fromkeys(("destination",), (1,)),
    **dict.fromkeys(("shifts", "offset", "correction", "ord"), (1,)),
    "stride": ((1, 1), (4, 1), 2),
    "dilation": (1,),
    "scale": (0.1,),
    "zero_point": (0,),
    "quant_min": (-128,),
    "quant_max": (127,),
    "reduce": ("sum",),
    "equation": ("...ij->...ji",),
    "dtype": (torch.float32,),
    # Tensors.
    **dict.fromkeys(("other", "end", "mat1", "mat2", "batch1", "batch2"), (SAME, SQUARE)),
    **dict.fromkeys(("tensor1", "tensor2", "input2", "x2", "target_tensor"), (SAME,)),
    **dict.fromkeys(("key", "positive", "negative", "tgt", "memory", "y"), (SAME,)),
    **dict.fromkeys(("var", "values", "grad_output", "weights", "batch"), (SAME,)),
    "target": (SAME, CLASSES, INDICES, UNIT),
    "vec": (VECTOR,),
    **dict.fromkeys(("vec1", "vec2", "running_mean", "mean", "bias"), (VECTOR,)),
    **dict.fromkeys(("running_var", "invstd", "boundaries", "sorted_sequence"), (POSITIVE,)),
    "weight": (0.5, VECTOR, SAME, *WEIGHTS),
    **dict.fromkeys(("index", "indices"), (INDICES, CLASSES)),
    "mask": (MASK,),
    "value": (0.5, SAME),
    "scale_factor": (2,),
    "hx": (SAME,),
    "attn_mask": (None,),
    "tensors": (LIST,),
    "arrays": (LIST,),
    "matrices": (LIST,),
    "grid": (GRID,),
}
"""What a parameter may be, by its name."""
OPTIONS = (SAME, UNIT, INDICES)
"""What the input may be."""
UNNAMED = ((), (8, 8))
"""Arguments of a class that does not name them."""


class Call(nn.Module):
    """A function as a module: tensors are inputs, the rest is fixed."""

    def __init__(self, function: Callable[..., Any], arguments: list[Any]) -> None:
        super().__init__()
        self.function = function
        leaves, self.spec = _pytree.tree_flatten(arguments)
        self.fixed = [None if isinstance(v, torch.Tensor) else v for v in leaves]
        self.tensors = [isinstance(v, torch.Tensor) for v in leaves]

    def forward(self, *inputs: Any) -> Any:
        """Call it."""
        given = iter(inputs)
        leaves = [
            next(given) if is_tensor else value
            for value, is_tensor in zip(self.fixed, self.tensors, strict=True)
        ]
        found = self.function(*_pytree.tree_unflatten(leaves, self.spec))
        # A result with names, such as that of `max`, is one for Python only.
        return tuple(found) if isinstance(found, tuple) else found


def _needed(signature: inspect.Signature) -> list[str] | None:
    """Names of the parameters without a default; None if one has to be by name."""
    found = []
    for parameter in signature.parameters.values():
        if parameter.default is not parameter.empty:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            return None
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            found.append(parameter.name)
    return found


def _choices(names: list[str]) -> Iterator[list[Any]]:
    """Lists of arguments to try; kinds of tensors are still words."""
    options = [
        OPTIONS if at == 0 and name in INPUTS else VALUES.get(name, (SAME, 1))
        for at, name in enumerate(names)
    ]
    yield from itertools.islice(itertools.product(*options), MOST_TRIES)


def _made(values: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Arguments, with tensors of that shape."""
    return [
        TENSORS[v](shape)
        if isinstance(v, str) and v in TENSORS
        else v()
        if callable(v) and not isinstance(v, type)
        else v
        for v in values
    ]


def _is_natural(module: nn.Module, inputs: tuple[Any, ...]) -> bool:
    """Whether it computes dense, real tensors, the same again, and changes nothing."""
    tensors = [v for v in inputs if isinstance(v, torch.Tensor)]
    before = [v.clone() for v in tensors]
    one = _pytree.tree_leaves(copy.deepcopy(module)(*inputs))
    others = []
    for seed in range(4):
        torch.manual_seed(seed)
        others += _pytree.tree_leaves(copy.deepcopy(module)(*inputs))
    return (
        all(torch.equal(a, b) for a, b in zip(before, tensors, strict=True))
        and any(v.is_floating_point() for v in (*tensors, *one))
        and all(isinstance(v, torch.Tensor) for v in one)
        and all(
            v.layout is torch.strided
            and not v.is_complex()
            and not v.is_quantized
            and v.device.type == "cpu"
            and torch.equal(torch.nan_to_num(v), torch.nan_to_num(w))
            for v, w in zip(one * 4, others, strict=True)
        )
    )


def _first(make: Callable[[tuple[int, ...]], Iterator[Net]]) -> Net | None:
    """The first that works."""
    for shape in SHAPES:
        torch.manual_seed(0)
        for net in make(shape):
            with contextlib.suppress(Exception), torch.no_grad():
                if _is_natural(net.module, net.inputs):
                    return net
    return None


def of_function(function: Callable[..., Any], names: list[str]) -> Net | None:
    """The model of a function that takes arguments with these names."""

    def make(shape: tuple[int, ...]) -> Iterator[Net]:
        for values in _choices(names):
            arguments = _made(values, shape)
            module = Call(function, arguments).eval()
            leaves = _pytree.tree_leaves(arguments)
            inputs = tuple(v for v in leaves if isinstance(v, torch.Tensor))
            yield Net(module, inputs)

    return _first(make)


def of_module(kind: Callable[..., nn.Module], needed: list[str], inputs: list[str]) -> Net | None:
    """The model of a class of modules.

    Args:
        kind: The class.
        needed: Names of its arguments.
        inputs: Names of the arguments of `forward`, with `self`.
    """

    def make(shape: tuple[int, ...]) -> Iterator[Net]:
        for values in _choices(needed) if needed else UNNAMED:
            module = None
            with contextlib.suppress(Exception):  # whatever it does not take
                module = kind(*_made(values, shape)).eval()
            for given in _choices(inputs[1:]) if module else ():
                yield Net(module, tuple(_made(given, shape)))

    return _first(make)


@cache
def names() -> dict[str, Any]:
    """By name: a class of modules, or a function with its signature."""
    found: dict[str, Any] = {}
    for name in sorted(dir(nn)):
        kind = getattr(nn, name)
        is_module = isinstance(kind, type) and issubclass(kind, nn.Module)
        # A lazy module becomes another one in its first call.
        if is_module and not name.startswith("Lazy"):
            found[f"nn/{name}"] = kind
    known = overrides.get_testing_overrides()
    spaces = overrides.get_overridable_functions()
    for short, space in (("F", nn.functional), ("torch", torch), ("Tensor", torch.Tensor)):
        listed = spaces[space] + (spaces[torch.functional] if space is torch else [])
        for function in listed:
            name = getattr(function, "__name__", "")
            if not name.isidentifier() or name.startswith("_") or name.endswith("_"):
                continue
            if short == "Tensor" and f"torch/{name}" in found:
                continue
            if getattr(space, name, None) is None or function not in known:
                continue
            if not function.__doc__:  # not for users
                continue
            found[f"{short}/{name}"] = (function, known[function])
    return found


def _make(what: Any) -> Net | None:
    function, signature = (what, what) if isinstance(what, type) else what
    signature = inspect.signature(signature)
    needed = _needed(signature)
    if needed is None:
        return None
    of: Callable[..., Net | None] = of_function
    if isinstance(what, type):
        inputs = _needed(inspect.signature(what.forward))
        if not inputs:
            return None
        of = partial(of_module, inputs=inputs)
        found = of(function, needed)
    else:
        found = of(function, needed or ["input", "other"])
    for name in signature.parameters:
        if found is None and name in VALUES and name not in needed:
            last = partial(_with_name, function, name)
            found = of(last, [*needed, name])
    return found


def _with_name(function: Callable[..., Any], name: str, *values: Any) -> Any:
    """Call a function with the last value as an argument of that name."""
    return function(*values[:-1], **{name: values[-1]})


def _add(name: str, what: Any) -> None:
    def net() -> Net:
        found = _make(what)
        if found is None:
            raise LookupError("no natural input")
        return found

    MODELS[f"functions/{name}"] = net


for _name, _what in names().items():
    _add(_name, _what)

if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    warnings.filterwarnings("ignore")
    for _name, _what in names().items():
        _net = _make(_what)
        print(_name, [tuple(v.shape) for v in _net.inputs] if _net else "none")
