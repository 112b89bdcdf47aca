"""Build the tables of signatures once.

A signature lists a program's inputs and outputs. Passes ask for each node whether it is
a parameter or a buffer, and each time a table of all inputs is built. Here a table is
kept until the list or one of its entries changes.

Source: PyTorch 2.13 `torch/export/graph_signature.py`, `ExportGraphSignature`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import ref

from torch.export import graph_signature

from orchestrator.lowering.patches import Patches

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
