"""Generated files as templates: those in `templates/`, filled.

A text that is inserted may end with a newline: it is that of the line it is inserted in.
`{ {{- x }}}` is `{x}` in C.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import TYPE_CHECKING

from orchestrator.emit.artifact import comment_text, row_comment
from orchestrator.emit.generate.names import cpp_name

if TYPE_CHECKING:
    import jinja2


def render(template: str, **context: object) -> str:
    """A template's text, with values for the names in it."""
    return _environment().get_template(f"{template}.jinja").render(context)


@cache
def _environment() -> jinja2.Environment:
    # 125 ms, once per build (decision 0042).
    import jinja2  # noqa: PLC0415  # most commands generate nothing

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orchestrator.emit.generate"),
        # A name that is misspelt in a template would be an empty text in C++.
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Functions end their text with a newline, and so does the line of the template.
        finalize=lambda x: x.removesuffix("\n") if isinstance(x, str) else x,
        # Names come from programs: `comment_text` and `identifier` make them safe for
        # C++, where & and < mean something else than in HTML.
        autoescape=False,  # noqa: S701  # nothing is HTML
    )
    environment.filters |= {
        "c_float": _c_float,
        "c_int": _c_int,
        "comment": comment_text,
        "cpp_name": cpp_name,
        "defined": _defined,
        "hex": "0x{:X}U".format,
        "row_comment": row_comment,
    }
    return environment


def _c_float(value: float) -> str:
    """A float as C has it; kernels use scales as floats."""
    (single,) = struct.unpack("<f", struct.pack("<f", value))
    # Nine digits name every float32 exactly (IEEE 754, 5.12.2).
    text = f"{single:.9g}"
    return f"{text}f" if {*text} & {*".e"} else f"{text}.0f"


def _c_int(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def _defined(parameters: str) -> str:
    """Parameters of a declaration in C, for its definition in C++."""
    if parameters == "void":
        return ""
    return re.sub(r"ORCH_AT_LEAST\((\d+)\)", r"\1", parameters)
