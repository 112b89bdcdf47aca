"""Values and methods as the user names them: on the command line and in a scenario."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from orchestrator.errors import Diagnostic, SourceSpan, UsageError, did_you_mean
from orchestrator.running.compare import elements
from orchestrator.running.npy import Array, read_npy
from orchestrator.running.product import ValueKind
from orchestrator.running.values import (
    Call,
    describe,
    input_misfit,
    kind_of,
    stored_as,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from orchestrator.running.product import Port, Product, ProductMethod
    from orchestrator.running.values import RunValue

    ReadBytes = Callable[[str], bytes]
