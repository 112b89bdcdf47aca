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

from torch.export import graph_signature
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
        if isinstance(codegen, _PyTreeCodeGen):
            module._in_spec = codegen.pytree_info.in_spec
            module._out_spec = codegen.pytree_info.out_spec
        for child in module.children():
            if isinstance(child, GraphModule):
                self._put_off(child)
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
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__["made"] = made = self.__dict__.get("made") or self._make()
        return getattr(made, name)


# Build the tables of signatures once.
#
# A signature lists a program's inputs and outputs. Passes ask for each node whether it is a
# parameter or a buffer, and each time a table of all inputs is built. Here a table is kept until
# the list or one of its entries changes.
#
# Source: PyTorch 2.13 `torch/export/graph_signature.py`, `ExportGraphSignature`.

_OF_INPUTS: Final = (
    *("parameters", "buffers", "non_persistent_buffers", "lifted_tensor_constants"),
    *("lifted_custom_objs", "user_inputs", "inputs_to_parameters"),
    *("inputs_to_buffers", "inputs_to_lifted_tensor_constants"),
    "inputs_to_lifted_custom_objs",
)
_OF_OUTPUTS: Final = (
    *("user_outputs", "buffers_to_mutate", "parameters_to_mutate"),
    "user_inputs_to_mutate",
)
"""Properties whose values never change."""
_ENTRIES: Final = (
    *("InputSpec", "OutputSpec", "TensorArgument", "TokenArgument", "SymIntArgument"),
    *("SymFloatArgument", "SymBoolArgument", "CustomObjArgument", "ConstantArgument"),
)


class Signatures:
    """Tables of signatures that are in use."""

    def __init__(self) -> None:
        self._changes = 0
        self._tables: dict[int, dict[str, tuple[int, list[Any], Any]]] = {}
        self._owners: dict[int, Any] = {}

    def install(self, patches: Patches) -> None:
        """Keep tables until the patches are reverted."""
        for name in _ENTRIES:
            patches.add(getattr(graph_signature, name), "__setattr__", self._noticed())
        owner = graph_signature.ExportGraphSignature
        for names, entries in ((_OF_INPUTS, "input_specs"), (_OF_OUTPUTS, "output_specs")):
            for name in names:
                make = vars(owner)[name].fget
                patches.replace(owner, name, self._kept(name, entries, make))

    def _noticed(self) -> Callable[[Any, str, Any], None]:
        """Set an attribute; count it if it was set before."""

        def set_attribute(own: Any, name: str, value: Any) -> None:
            if name in vars(own):
                self._changes += 1
            object.__setattr__(own, name, value)

        return set_attribute

    def _kept(self, name: str, entries: str, make: Callable[[Any], Any]) -> property:
        def table(signature: Any) -> Any:
            listed = getattr(signature, entries)
            tables = self._tables_of(signature)
            found = tables.get(name)
            # Entries of an equal list are the same objects, or equal ones.
            if found and found[0] == self._changes and found[1] == listed:
                return found[2]
            tables[name] = (self._changes, list(listed), make(signature))
            return tables[name][2]

        return property(table)

    def _tables_of(self, signature: Any) -> dict[str, tuple[int, list[Any], Any]]:
        number = id(signature)
        if number not in self._owners:
            self._owners[number] = ref(signature, lambda _: self._drop(number))
            self._tables[number] = {}
        return self._tables[number]

    def _drop(self, number: int) -> None:
        del self._owners[number], self._tables[number]
