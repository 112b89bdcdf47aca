"""The name of a product: its header, its library and its functions have it, too."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, StrictStr

from orchestrator.profile.fields import (
    MAX_NAME_LENGTH,
    name_like,
    problem,
    shown,
    text_schema,
)
from orchestrator.targets.c_names import HEADERS, LIBRARIES

_FORM: Final = "[a-z][a-z0-9-]*"
_OF_THE_RUNTIME: Final = "orch(-.*)?"


def _check(value: str) -> str:
    if re.fullmatch(_OF_THE_RUNTIME, value):
        taken = "functions and headers of the runtime begin with orch"
    elif value in HEADERS:
        taken = f"C libraries and compilers have a header {value}.h"
    elif value in LIBRARIES:
        taken = f"toolchains have a library lib{value}.a"
    else:
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}: {taken}",
        hint=f'choose another name, such as "my-{value}"',
    )


_TAKEN: Final = [
    {"pattern": f"^{_OF_THE_RUNTIME}$"},
    {"enum": sorted(HEADERS | LIBRARIES)},
]
ProductName = Annotated[
    StrictStr,
    AfterValidator(name_like(_FORM, "-")),
    AfterValidator(_check),
    text_schema("name", _FORM, maxLength=MAX_NAME_LENGTH, **{"not": {"anyOf": _TAKEN}}),
]
