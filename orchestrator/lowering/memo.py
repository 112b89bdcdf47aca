"""Operators that were dispatched with the same arguments before.

An operator on fake tensors reads only metadata, so its result is known once it was
dispatched with such arguments. If the node that is replayed has just that metadata
already, its value stays. Operators whose results could depend on more take the full
path.

Source: ExecuTorch 1.5 `exir/pass_base.py`, `_ExportPassBase._fx`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree

from orchestrator.lowering.bases import BASES, PROXIES, PROXY_KINDS
from orchestrator.lowering.passes import advance, sequence_number
from orchestrator.lowering.patches import Patches

if TYPE_CHECKING:
    from orchestrator.lowering.passes import Passes


class UnknownValueError(Exception):
    """A value has no token, or only its content would give one."""


def token_of(value: Any) -> Any:
    """A token that is equal for values that an operator cannot distinguish.

    Raises:
        UnknownValueError: There is no such thing.
    """
    kind = type(value)
    if kind is FakeTensor:
        return _tensor_token(value)
    if kind is float:
        # 0.0 and -0.0 are equal and hash alike; hex tells them apart, and NaN is equal
        # to itself.
        return kind, value.hex()
    if kind in PLAIN:
        return kind, value
    if kind in (tuple, list) or isinstance(value, (tuple, list)):
        return kind, tuple(map(token_of, value))
    if isinstance(value, dict):
        return kind, tuple((key, token_of(item)) for key, item in value.items())
    # Nodes, symbols, modules, generators: what an operator makes of them may depend on
    # more than their value.
    raise UnknownValueError


PLAIN = frozenset(
    {
        *(int, bool, float, str, type(None), type(...)),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
    }
)
"""Kinds of values that a graph has as they are."""


def _tensor_token(tensor: FakeTensor) -> Any:
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    offset = tensor.storage_offset()
    if (
        # A fake tensor that knows its content: item() of it gives a number.
        tensor.constant is not None
        or tensor.layout is not torch.strided
        # Symbolic sizes compare by guards, which would become part of the program.
        or not all(type(n) is int for n in (*sizes, *strides, offset))
        or tensor.is_quantized
        or tensor.is_conj()
        or tensor.is_neg()
    ):
        raise UnknownValueError
    return (
        # Two modes have two worlds of symbols. An id may be used again once a mode is
        # gone, but modes live as long as the memo's block.
        *(FakeTensor, id(tensor.fake_mode), tensor.dtype, tensor.fake_device),
        *(sizes, strides, offset, tensor.requires_grad, tensor.is_leaf),
    )


_BY_CONTENT = (
    torch.Tag.nondeterministic_seeded,
    torch.Tag.dynamic_output_shape,
    torch.Tag.data_dependent_output,
)


class Memo:
    """Results of operators, by their arguments.

    Args:
        passes: Count what is remembered and what is dispatched.
        remembers: Whether results are kept; otherwise only their dependencies are
            computed.
    """

    def __init__(self, passes: Passes, *, remembers: bool) -> None:
        self._passes = passes
        self._remembers = remembers
        self._results: dict[Any, Any] = {}
        self._pure: dict[Any, bool] = {}
        self.stamp: Callable[[Any, Any, Any], None] | None = None
        """Called with nodes whose value depends only on metadata."""

    def install(self, patches: Patches) -> None:
        """Use the memo until the patches are reverted."""
        for base in BASES:
            self._install(base, patches)

    def _install(self, base: Any, patches: Patches) -> None:
        memo, original = self, base._fx

        def fx(  # noqa: PLR0917  # as the method that it replaces
            self: Any, kind: str, target: Any, args: Any, kwargs: Any, meta: Any
        ) -> Any:
            key = memo.key_of(kind, target, args, kwargs)
            before = sequence_number()
            # Pending symbols are bound to the next node that is traced, whatever it is.
            if key in memo._results and not _has_fresh_symbols(self):
                token, numbers = memo._results[key]
                value = meta.data.get("val")
                # The node that is replayed has just the metadata that dispatching would
                # give: its own object stays, and so do all that hold it.
                if memo.token(value) == token:
                    memo._passes.now.remembered += 1
                    advance(numbers)
                    step = (self, kind, target, args, kwargs, meta, value)
                    result = _replayed(PROXIES[base], *step)
                    memo._stamp(result, numbers)
                    return result
            if kind == "call_function":
                memo._passes.now.dispatched += 1
            result = original(self, kind, target, args, kwargs, meta)
            token = None if key is None else memo.token(result.data)
            if token is not None:
                # Operators that record gradients take numbers, others none.
                numbers = sequence_number() - before
                if memo._remembers:
                    memo._results[key] = (token, numbers)
                memo._stamp(result, numbers)
            return result

        patches.replace(base, "_fx", fx)

    def _stamp(self, result: Any, numbers: int) -> None:
        if self.stamp is not None:
            self.stamp(result.node, self.context(), numbers)

    def knows(self, node: Any, interpreter: Any) -> int | None:
        """Whether dispatching a node would give a value like the one it has.

        Returns:
            How many numbers dispatching takes (`orchestrator.lowering.passes`); None
            if the value would be another one, or that is not known.
        """
        if not self._remembers:
            return None
        args, kwargs = interpreter.fetch_args_kwargs_from_env(node)
        key = self.key_of(node.op, node.target, args, kwargs)
        known: tuple[Any, int] = self._results.get(key, (None, 0))
        if known[0] is None or self.token(node.meta["val"]) != known[0]:
            return None
        return known[1]

    def key_of(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        """What the result depends on; None if that is not known."""
        if kind != "call_function" or not self._is_pure(target):
            return None
        try:
            return (target, token_of(_data(args)), token_of(_data(kwargs)), self.context())
        except UnknownValueError:
            return None

    def context(self) -> Any:
        """The modes that results depend on, in addition to arguments."""
        # A memo without the first left the bytes of programs equal, and numbered nodes
        # differently (docs/lowering.md). Operators of TOSA check the specification.
        return (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), _tosa_specification())

    def token(self, value: Any) -> Any:
        """The token of a result; None if there is none."""
        try:
            return token_of(value)
        except UnknownValueError:
            return None

    def _is_pure(self, target: Any) -> bool:
        found = self._pure.get(target)
        if found is None:
            found = self._pure[target] = depends_on_metadata(target)
        return found


def depends_on_metadata(target: Any) -> bool:
    """Whether an operator changes nothing, and metadata determines its result."""
    if isinstance(target, EdgeOpOverload):
        target = target._op
    return (
        isinstance(target, OpOverload)
        and not target._schema.is_mutable
        and not any(tag in target.tags for tag in _BY_CONTENT)
    )


def _data(value: Any) -> Any:
    if isinstance(value, PROXY_KINDS):
        return value.data
    if isinstance(value, (tuple, list)):
        return tuple(map(_data, value))
    if isinstance(value, dict):
        return {key: _data(item) for key, item in value.items()}
    return value


def _has_fresh_symbols(step: Any) -> bool:
    """Whether tracing a node could introduce new symbols."""
    mode = step.fake_tensor_mode
    shapes = None if mode is None else mode.shape_env
    return shapes is not None and bool(shapes.pending_fresh_unbacked_symbols)


def _tosa_specification() -> Any:
    """Further state that backend operators read: Arm's TOSA specification."""
    # Not imported here: a lowering for Cortex-M need not load Arm's backend.
    module = sys.modules.get("executorch.backends.arm.tosa.specification")
    if module is None:
        return None
    spec = module.TosaLoweringContext.tosa_spec_var.get(None)
    return None if spec is None else str(spec)


class _NotPlainError(Exception):
    """An argument that the tracer must process."""


def _nodes(value: Any) -> Any:
    """Arguments as a graph has them: what `Tracer.create_arg` makes of plain ones."""
    kind = type(value)
    if kind in PROXY_KINDS:
        return value.node
    if kind in PLAIN:
        return value
    if kind is tuple:
        return tuple(map(_nodes, value))
    # A plain list: `Tracer.create_arg` makes one of both.
    if kind in (list, immutable_list):
        return [_nodes(item) for item in value]
    if kind in (dict, immutable_dict):
        return {key: _nodes(item) for key, item in value.items()}
    raise _NotPlainError


def _replayed(  # noqa: PLR0917  # as `_fx`
    proxy_value: Any,
    step: Any,
    kind: str,
    target: Any,
    args: Any,
    kwargs: Any,
    meta: Any,
    value: Any,
) -> Any:
    """A node with its previous value: what `_fx` does except dispatching."""
    tracer, name = step.tracer, None
    if isinstance(target, OpOverload):
        name = tracer.graph._target_to_str(target.overloadpacket.__name__)
    try:
        # `create_proxy` would take the arguments apart again.
        node = tracer.create_node(kind, target, _nodes(args), _nodes(kwargs), name)
        proxy = tracer.proxy(node)
    except _NotPlainError:
        proxies = pytree.tree_map_only(PROXY_KINDS, lambda x: x.proxy, (args, kwargs))
        proxy = tracer.create_proxy(kind, target, *proxies, name=name)
    proxy.node.meta.update(meta.data)
    if type(value) is FakeTensor:
        proxy.node.meta["val"], proxy.node.meta["tensor_meta"] = value, None
    else:
        tracer.set_metadata(proxy.node, value)
    return proxy_value(value, proxy)
