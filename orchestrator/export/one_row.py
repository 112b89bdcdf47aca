"""Lines `[N, C, L]` as images `[N, C, 1, L]` of one row, which int8 kernels take.

While a model is captured, each operator that has a form for images is called in it, and
the next one gets its image: only what has no such form gets the line, a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch.nn import functional
from torch.utils import _pytree

from orchestrator.export import forms

_RANK: Final = 3
_LAST: Final = _RANK - 1
_ROW: Final = 2
"""The dimension that images have more, of one row."""
_POOL: Final = ("kernel_size", "stride", "padding")
_CONVOLUTION: Final = ("weight", "bias", "stride", "padding")
_FORMS: Final[dict[str, tuple[Callable[..., Any], tuple[str, ...]]]] = {
    # By name, with the arguments of torch.nn.functional in order: a mode sees calls of
    # functions, positional or not.
    "conv1d": (forms.conv2d, (*_CONVOLUTION, "dilation", "groups")),
    "conv_transpose1d": (
        forms.conv_transpose2d,
        (*_CONVOLUTION, "output_padding", "groups", "dilation"),
    ),
    "max_pool1d": (forms.max_pool2d, (*_POOL, "dilation", "ceil_mode")),
    "avg_pool1d": (forms.avg_pool2d, (*_POOL, "ceil_mode", "count_include_pad")),
    "adaptive_avg_pool1d": (forms.adaptive_avg_pool2d, ("output_size",)),
    "adaptive_max_pool1d": (forms.adaptive_max_pool2d, ("output_size",)),
}
"""By operator: that of images, and the names of its arguments behind the first one."""
# A window of one row, steps of one, no padding: the row is neither joined with others
# nor copied.
_ACROSS: Final = {
    **dict.fromkeys(("kernel_size", "stride", "dilation", "output_size"), 1),
    **dict.fromkeys(("size", "scale_factor"), 1),
    **dict.fromkeys(("padding", "output_padding"), 0),
}
"""What an argument is across the one row."""
_MEANS: Final = {"mean": forms.mean, "sum": forms.total}
"""Operators that become those of images whatever gives the line."""
_BINARY: Final = frozenset({"add", "sub", "mul", "div", "truediv"})
_IN_PLACE: Final = frozenset({"__setitem__", *(f"__i{name}__" for name in _BINARY)})
# Written out by hand; what is missing gets the line again, by a copy, and is right.
_BY_ITEM: Final = frozenset(
    {
        *("relu", "relu6", "leaky_relu", "elu", "gelu", "silu", "mish", "softplus"),
        *("sigmoid", "tanh", "hardtanh", "hardsigmoid", "hardswish", "clamp", "clip"),
        *("celu", "selu", "softsign", "log_sigmoid", "tanhshrink", "softshrink", "hardshrink"),
        *(
            "_threshold",
            "rrelu",
            "log",
            "sin",
            "cos",
            "erf",
            "sign",
            "reciprocal",
            "minimum",
            "maximum",
        ),
        *("abs", "neg", "exp", "sqrt", "rsqrt", "square", "pow", "dropout", "prelu"),
        *("batch_norm", *_BINARY, *(f"__{name}__" for name in _BINARY)),
        *(f"__{how}{name}__" for name in _BINARY for how in "ri"),
    }
)
"""Operators whose items depend on those at the same place, or of the same channel."""


def is_by_channel(name: str, given: Any) -> bool:
    """Whether channels have numbers of their own: those of images do as int8."""
    return name == "batch_norm" or (name == "prelu" and given[1].numel() > 1)


class Lines:
    """Lines of a model that is captured."""

    def __init__(self) -> None:
        # With each line its image. Lines are kept, so that none gets the id of another.
        # By id, as comparing tensors compares their items.
        self._known: dict[int, tuple[Any, Any]] = {}
        self._given: dict[int, tuple[Any, Any]] = {}  # inputs, buffers, other results
        self._changed: set[int] = set()
        self._own: dict[str, Callable[..., Any]] = {
            **dict.fromkeys(("cat", "concat"), self._cat),
            **{name: partial(self._mean, form) for name, form in _MEANS.items()},
            "interpolate": self._interpolate,
            "pad": self._pad,
            "glu": self._glu,
            "contiguous": self._contiguous,
            "__getitem__": self._item,
        }

    def called(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator gives, called for images; NotImplemented if it is not."""
        first = args[0] if args else None
        if name in _FORMS and _is_line(first) and not kwargs.get("return_indices"):
            return self._in_its_form(name, first, args[1:], kwargs)
        is_change = _changes(name) or kwargs.get("inplace", False)
        # A tensor from outside that is changed in place: an image made of it before
        # would be the old one.
        if is_change and id(first) not in self._known:
            self._given.pop(id(first), None)
            return NotImplemented
        leaves = _pytree.tree_leaves((args, kwargs))
        is_known = any(id(leaf) in self._known for leaf in leaves)
        if name in self._own and (is_known or (name in _MEANS and _is_line(first))):
            return self._own[name](*args, **kwargs)
        is_by_item = name in _BY_ITEM or name.removesuffix("_") in _BY_ITEM
        if is_by_item and (is_known or (_is_line(first) and is_by_channel(name, leaves))):
            return self._by_item(func, args, kwargs)
        if is_change:
            return self._changed_by(func, args, kwargs)
        return NotImplemented

    def settled(self, value: Any) -> Any:
        """A tensor; a line that was changed in place, as it is now."""
        if id(value) in self._changed:
            return _line_of(self._known[id(value)][1])
        return value

    def _in_its_form(self, name: str, line: Any, args: Any, kwargs: Any) -> Any:
        function, names = _FORMS[name]
        given = dict(zip(names, args, strict=False)) | kwargs
        given.pop("return_indices", None)
        given = _with_row(given)
        if "weight" in given:
            given["weight"] = given["weight"].unsqueeze(_ROW)
        return self._noted(function(self._image(line), **given))

    def _by_item(self, func: Any, args: Any, kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if any(isinstance(a, torch.Tensor) and a.ndim > _RANK for a in given):
            return NotImplemented
        images = [self._operand(a) for a in args]
        result = func(*images, **{k: self._operand(v) for k, v in kwargs.items()})
        if result is not images[0]:
            return self._noted(result)
        self._changed.add(id(args[0]))
        return args[0]

    def _changed_by(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator gives that changes a line in place."""
        line, *others = args
        # The line itself stays as it was: its image is what later operators read, and
        # `settled` gives the line anew where a line is needed.
        now = _line_of(self._image(line)).clone()
        result = func(now, *map(self.settled, others), **kwargs)
        self._known[id(line)] = (line, _image_of(now))
        self._changed.add(id(line))
        return line if result is now else result

    def _operand(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.ndim <= 1:
            return value
        # A bias [C, 1] or mask that is broadcast needs the row as well; one dimension
        # is broadcast along the line either way.
        return self._image(value) if _is_line(value) else value.unsqueeze(-2)

    def _cat(self, lines: Any, dim: int = 0) -> Any:
        if not all(map(_is_line, lines)):
            return NotImplemented
        at = dim % _RANK
        images = [*map(self._image, lines)]
        return self._noted(torch.cat(images, at + 1 if at == _LAST else at))

    def _mean(self, form: Any, line: Any, dim: Any = None, keepdim: Any = 0, **options: Any) -> Any:
        dims = _inner_dims(line, dim, options)
        if not dims:
            return NotImplemented
        if id(line) not in self._known:  # such as words: an image of one channel as it lies
            image = line.unsqueeze(1).clone(memory_format=torch.channels_last)
            found = form(image, [d + 1 for d in dims], keepdim=True).contiguous().squeeze(1)
            return found if keepdim else found.squeeze(sorted(dims))
        image = self._image(line)
        # DecomposeMeanPass makes a pooling of a mean over the last two dimensions.
        if dims == {_LAST} and form is forms.mean:  # ExecuTorch has it as a pooling
            found = image.mean((_ROW, _ROW + 1), bool(keepdim))
            return self._noted(found) if keepdim else found
        found = form(image, [d + (d == _LAST) for d in dims], keepdim=True)
        return self._noted(found) if keepdim else _line_of(found).squeeze(sorted(dims))

    def _interpolate(
        self,
        line: Any,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        **options: Any,
    ) -> Any:
        if mode != "nearest":
            return NotImplemented
        given = _with_row({"size": size, "scale_factor": scale_factor, **options})
        return self._noted(functional.interpolate(self._image(line), **given))

    def _glu(self, line: Any, dim: int = -1) -> Any:
        return self._noted(forms.glu(self._image(line), dim % _RANK + (dim % _RANK == _LAST)))

    def _pad(self, line: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
        # PyTorch lists pads from the last dimension on: the row comes second.
        pads = [*pad[:2], 0, 0, *pad[2:]]
        return self._noted(forms.pad(self._image(line), pads, mode, value))

    def _item(self, line: Any, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(part, slice) for part in parts) or not _is_line(line):
            return NotImplemented
        whole = (*parts, *(slice(None),) * (_RANK - len(parts)))
        image = self._image(line)[(*whole[:_ROW], slice(None), whole[_LAST])]
        return self._noted(image.clone(memory_format=torch.channels_last))

    def _contiguous(self, line: Any, **kwargs: Any) -> Any:
        return NotImplemented if kwargs else line

    def _image(self, line: Any) -> Any:
        if id(line) in self._known:
            return self._known[id(line)][1]
        if id(line) not in self._given:
            self._given[id(line)] = (line, _image_of(line))
        return self._given[id(line)][1]

    def _noted(self, image: Any) -> Any:
        line = _line_of(image)
        self._known[id(line)] = (line, image)
        return line


def _inner_dims(line: Any, dim: Any, options: Any) -> set[int]:
    """Dimensions without the batch, if they are these alone and have known sizes."""
    dims = {d % _RANK for d in ([dim] if isinstance(dim, int) else dim or [0])}
    is_known = all(isinstance(size, int) for size in line.shape[1:])
    return set() if 0 in dims or options or not is_known else dims


def _with_row(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments with what they are across the one row."""
    found = dict(given)
    for key, across in _ACROSS.items():
        value = given.get(key)
        if isinstance(value, list | tuple):
            found[key] = (across, *value) if value else value
        elif value is not None and not isinstance(value, str):
            found[key] = (across, value)
    return found


def _image_of(line: Any) -> Any:
    """In channels-last layout by its strides, which say so if it has one channel."""
    return line.unsqueeze(_ROW).clone(memory_format=torch.channels_last)


def _line_of(image: Any) -> Any:
    return image.contiguous().squeeze(_ROW)


def _changes(name: str) -> bool:
    """Whether an operator changes its first argument in place."""
    is_word = not name.startswith("__")
    return name in _IN_PLACE or (is_word and name.endswith("_"))


def _is_line(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == _RANK and value.is_floating_point()
