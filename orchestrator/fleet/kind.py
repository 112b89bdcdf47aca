"""What a command does with each product."""

from enum import StrEnum


class Kind(StrEnum):
    """What a command does with each product."""

    BUILD = "build"
    CHECK = "check"
    SIZE = "size"
    VERIFY = "verify"
    RUN = "run"
    TEST = "test"
    LOCK_CHECK = "lock --check"
    OUTPUTS_CHECK = "lock --check --outputs"
