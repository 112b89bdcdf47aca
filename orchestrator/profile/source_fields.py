"""Value types of models: their paths, and those of models given as Python."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, StrictStr

from orchestrator.profile.fields import (
    check_path,
    identifier,
    is_relative_path,
    problem,
    shown,
    text_schema,
)
from orchestrator.profile.lowering import VELA_SET

_SECTION = r"[A-Za-z0-9_.-]+"
_LONG_OPTION = r"--[a-z][a-z0-9-]*(=[^\s=]+)?"


def split_callable(text: str) -> tuple[str, str]:
    """File and name of a Python callable `file.py:name`."""
    path, _, name = text.rpartition(":")
    return path, name


def _check_callable(value: str) -> str:
    path, name = split_callable(value)
    if path.endswith(".py") and is_relative_path(path) and name.isidentifier():
        return value
    near = value if value.endswith(".py") else f"{PurePosixPath(value).stem}.py"
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected="a Python file relative to the profile, and a callable in it",
        hint=f'write it as "{near}:build"'
        if ":" not in value and value
        else 'write it as "models/kws.py:build"',
    )


def _check_option(value: str) -> str:
    if not re.fullmatch(_LONG_OPTION, value, re.ASCII):
        raise problem(
            "bad-value",
            f"{{key}} cannot be {shown(value)}",
            expected="a long option of Vela, with = before its value",
            hint='write it as "--optimise=Size"',
        )
    name = value.partition("=")[0]
    if name in VELA_SET:
        raise problem(
            "bad-value",
            f"{{key}} cannot have {name}",
            expected="options that no key of the profile decides",
            hint="leave it out: lowering, system_config, memory_mode and config say it",
        )
    return value


def is_section(text: str) -> bool:
    """Whether Vela's command line takes a name of a section."""
    return bool(re.fullmatch(_SECTION, text, re.ASCII))


PythonCallable = Annotated[
    StrictStr,
    AfterValidator(_check_callable),
    text_schema("file and callable", r"[^/\\][^\\]*\.py:[A-Za-z_]\w*"),
]
Section = Annotated[
    StrictStr,
    AfterValidator(
        identifier(_SECTION, "letters, digits, _, - and .", "Vela's file has it")
    ),
    text_schema("section", _SECTION),
]
VelaOption = Annotated[
    StrictStr, AfterValidator(_check_option), text_schema("option", _LONG_OPTION)
]


def is_model_path(text: str) -> bool:
    """Whether the text is a path of a model or its data: on this machine is enough."""
    return is_relative_path(text.lstrip("/"))


def _check_model_path(value: str) -> str:
    return value if is_model_path(value) else check_path(value)


ModelPath = Annotated[
    StrictStr, AfterValidator(_check_model_path), text_schema("path", r"[^\\]+")
]
