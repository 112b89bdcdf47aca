"""Generate the Python code of graphs on demand.

Passes make a graph module for each step and generate its code again after each change,
though hardly any of them is ever run. Here `recompile` only notes that there is code to
generate: running the module, or reading its code, does it. A module without code at the
end still generates it on demand: each has its own class with everything needed.

Source: PyTorch 2.13 `torch/fx/graph_module.py`, `GraphModule.recompile`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import ref

from torch.fx.graph import _PyTreeCodeGen
from torch.fx.graph_module import GraphModule

from orchestrator.lowering.patches import Patches

_GENERATED: Final = ("_code", "_lineno_map", "_prologue_start")
"""What `recompile` leaves with the instance; `forward` goes to its class."""
_PICKLED: Final = ("__reduce__", "__reduce_package__")
"""They copy the instance before they generate its code."""


class DeferredCode:
    """Code that is generated on demand."""

    def __init__(self) -> None:
        self._recompile = GraphModule.recompile
        self.deferred = 0
        self.generated = 0

    def install(self, patches: Patches) -> None:
        """Defer code until the patches are reverted."""
        deferred = self

        def recompile(self: GraphModule) -> _Code:
            return deferred._put_off(self)

        patches.replace(GraphModule, "recompile", recompile)

    def _put_off(self, module: GraphModule) -> _Code:
        """Note that a module's code, and that of its children, is to be generated."""
        self.deferred += 1
        codegen = module.graph._codegen
        # What `recompile` sets before it generates code, and others read at once.
        if isinstance(codegen, _PyTreeCodeGen):
            module._in_spec = codegen.pytree_info.in_spec
            module._out_spec = codegen.pytree_info.out_spec
        for child in module.children():
            if isinstance(child, GraphModule):
                self._put_off(child)
        # GraphModule.__new__ makes a class for each instance (PyTorch 2.13), so that an
        # attribute of it is that module's alone.
        own = type(module)
        for name in _GENERATED:
            module.__dict__.pop(name, None)
            setattr(own, name, _Wanted(self, module, name))
        own.forward = _Wanted(self, module, "forward")
        for name in _PICKLED:
            setattr(own, name, _Wanted(self, module, name))
        return _Code(lambda: self.generate(module))

    def generate(self, module: GraphModule) -> Any:
        """Generate a module's code."""
        own = type(module)
        for name in (*_GENERATED, *_PICKLED, "forward"):
            if isinstance(vars(own).get(name), _Wanted):
                delattr(own, name)
        self.generated += 1
        return self._recompile(module)


class _Wanted:
    """An attribute of a module's class that exists once code was generated."""

    def __init__(self, deferred: DeferredCode, module: GraphModule, name: str) -> None:
        self._deferred = deferred
        # Weak: the class would keep its instance alive, and graphs of all passes with
        # it.
        self._module = ref(module)
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        module = self._module()
        if module is not None:
            self._deferred.generate(module)
        return getattr(owner if instance is None else instance, self._name)


class _Code:
    """What `recompile` returns, made when an attribute of it is read."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        # copy and pickle look for special methods: generating code for that would undo
        # all that is saved.
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__["made"] = made = self.__dict__.get("made") or self._make()
        return getattr(made, name)
