"""JSON Schemas, judged by jsonschema.

Its import takes two seconds, as it compiles grammars of internet names. So it is imported by
those tests alone that ask for it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


@cache
def validator(schema: str) -> Validator:
    """What checks documents by a schema, after the schema itself is checked."""
    from jsonschema.validators import validator_for  # noqa: PLC0415  # above

    document = json.loads(schema)
    judge = validator_for(document)
    judge.check_schema(document)
    return judge(document)
