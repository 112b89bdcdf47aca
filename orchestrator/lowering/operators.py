"""Look up PyTorch's decomposable operators once.

For each decomposition, and in it for each library, PyTorch looks up all operators of
that kind by name, so that they are there. If the dispatcher lists the same ones as
before they are.

Source: PyTorch 2.13 `torch/_export/utils.py`, `_materialize_cpp_cia_ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch._export import utils

if TYPE_CHECKING:
    from orchestrator.lowering.patches import Patches


def look_up_once(patches: Patches) -> None:
    """Look operators up once, until the patches are reverted."""
    original, known = utils._materialize_cpp_cia_ops, [""]

    def materialize() -> None:
        listed = torch._C._dispatch_get_registrations_for_dispatch_key(
            "CompositeImplicitAutograd"
        )
        if listed != known:
            original()
            known[:] = listed

    patches.replace(utils, "_materialize_cpp_cia_ops", materialize)
