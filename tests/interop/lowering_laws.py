"""Laws of accelerated lowering; runs where ExecuTorch is installed.

Prints JSON: by law, whether it holds; what passes hand on by "targets".
"""

# mypy: ignore-errors
# PyTorch is not there when the project is checked.

from __future__ import annotations

import copy
import gc
import json
import logging
import pickle
import sys
import warnings
from contextlib import suppress

import torch
from executorch.exir.pass_base import ExportPass, _ExportPassBase
from torch._export.pass_base import _ExportPassBaseDeprecatedDoNotUse
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase
from torch.fx.traceback import NodeSource

import orchestrator.lowering.accelerate as accelerate_module
from orchestrator.lowering import accelerated
from orchestrator.lowering.record import recorded
from orchestrator.lowering.targets import guard_of
from tests.interop.lowering_nets import lowering
from tests.interop.lowering_targets import watched

PATCHED = (
    (NodeSource, "__init__"),
    (GraphModule, "recompile"),
    (_ExportPassBase, "_fx"),
    (_ExportPassBase.ExportInterpreter, "run_node"),
    (_ExportPassBaseDeprecatedDoNotUse, "_fx"),
    (PassBase, "__call__"),
)


def _now() -> list[object]:
    return [vars(owner)[name] for owner, name in PATCHED] + [gc.get_threshold()]


def _restores() -> bool:
    before = _now()
    with accelerated():
        changed = all(a is not b for a, b in zip(before, _now(), strict=True))
    added = ((_ExportPassBase, "node_debug_str"), (PassBase, "__init_subclass__"))
    absent = all(name not in vars(owner) for owner, name in added)
    return changed and _now() == before and absent


def _restores_after_an_error() -> bool:
    before = _now()
    with suppress(KeyError), accelerated():
        raise KeyError
    return _now() == before


def _nests() -> bool:
    before = _now()
    with accelerated() as outer:
        inside = _now()
        with accelerated() as inner:
            same = _now() == inside
        return same and inner is outer and _now() == inside and before != inside


def _refuses_other_versions() -> bool:
    before, known = _now(), accelerate_module.KNOWN
    accelerate_module.KNOWN = {"torch": ("0.1",), "no-such-package": ("1",)}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with accelerated():
                same = _now() == before
    finally:
        accelerate_module.KNOWN = known
    (warning,) = caught
    text = str(warning.message)
    return same and "torch 2" in text and "no-such-package is not installed" in text


class _Sum(torch.nn.Module):
    # Annotations that are texts could not be pickled.
    def forward(self, x):  # noqa: ANN001, ANN202
        return x + 1


def _generates_code_on_demand() -> bool:
    traced = torch.fx.symbolic_trace(_Sum())
    with accelerated() as ledger:
        graphs = [GraphModule(traced, copy.deepcopy(traced.graph)) for _ in range(6)]
    one = torch.ones(2)
    holds = [
        ledger.generated == 0,
        graphs[0](one).tolist() == [2, 2],
        graphs[1].forward(one).tolist() == [2, 2],
        graphs[2].code == traced.code,
        copy.deepcopy(graphs[3])(one).tolist() == [2, 2],
        pickle.loads(pickle.dumps(graphs[4]))(one).tolist() == [2, 2],  # noqa: S301
    ]
    graphs[5].graph = copy.deepcopy(traced.graph)
    return all([*holds, graphs[5](one).tolist() == [2, 2]])


def _changed(change: object) -> bool:
    """Whether a recording differs if a pass does something else."""

    class Pass(ExportPass):
        def call_operator(self, op, args, kwargs, meta):  # noqa: ANN001, ANN202
            op, meta = change(op, meta)
            return super().call_operator(op, args, kwargs, meta)

    program = torch.export.export(
        torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid()), (torch.ones(3),)
    )
    with recorded() as plain:
        ExportPass()(program.graph_module)
    with recorded() as other:
        Pass()(program.graph_module)
    # The name of the pass is another one anyway.
    lines = (plain.stages[0].lines, other.stages[0].lines)
    return lines[0] != lines[1]


def _other_operator(op: object, meta: object) -> tuple:
    relu = torch.ops.aten.relu.default
    return (torch.ops.aten.abs.default if op is relu else op), meta


def _other_metadata(op: object, meta: object) -> tuple:
    meta = meta.copy()
    meta.data["custom"] = {"a": 1}
    return op, meta


class _Guarded(ExportPass):
    targeted_ops = (torch.ops.aten.relu.default,)

    def call_operator(self, op, args, kwargs, meta):  # noqa: ANN001, ANN202
        """Hand on all but one."""
        if op not in self.targeted_ops or not meta:
            return super().call_operator(op, args, kwargs, meta)
        return super().call_operator(op, args, kwargs, meta)


class _Marks(_Guarded):
    def call_operator(self, op, args, kwargs, meta):  # noqa: ANN001, ANN202
        if op not in self.targeted_ops:
            return super().call_operator(op, args, kwargs, meta, True)  # noqa: FBT003
        return super().call_operator(op, args, kwargs, meta)


class _Negates(_Guarded):
    def call_operator(self, op, args, kwargs, meta):  # noqa: ANN001, ANN202
        if op not in self.targeted_ops and not meta:
            return super().call_operator(op, args, kwargs, meta)
        return super().call_operator(op, args[:1], kwargs, meta)


class _Drops(_Guarded):
    def call_operator(self, op, args, kwargs, meta):  # noqa: ANN001, ANN202
        if op not in self.targeted_ops:
            return super().call_operator(op, args[:1], kwargs, meta)
        return super().call_operator(op, args, kwargs, meta)


def _reads_guards() -> bool:
    guard = guard_of(_Guarded.call_operator)
    others = (_Marks, _Negates, _Drops)
    unknown = [guard_of(other.call_operator) for other in others]
    return guard(_Guarded()) == _Guarded.targeted_ops and unknown == [None] * 3


def _leaves_no_stamps() -> bool:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(3),))
    with accelerated():
        made = ExportPass()(program.graph_module).graph_module.graph
        stamped = "_orchestrator_stamps" in vars(made)
    return stamped and "_orchestrator_stamps" not in vars(made)


def main() -> None:
    """Try all laws."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    lowering("random 0")().to_executorch()  # imports everything
    sys.stdout.write(
        json.dumps(
            {
                "restores": _restores(),
                "restores after an error": _restores_after_an_error(),
                "nests": _nests(),
                "targets": watched(),
                "reads guards": _reads_guards(),
                "leaves no stamps": _leaves_no_stamps(),
                "refuses other versions": _refuses_other_versions(),
                "generates code on demand": _generates_code_on_demand(),
                "notices another operator": _changed(_other_operator),
                "notices other metadata": _changed(_other_metadata),
            }
        )
    )


if __name__ == "__main__":
    main()
