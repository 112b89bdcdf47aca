"""Values of options."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from orchestrator.cli.values import names, pixel_range


def test_names_between_commas() -> None:
    assert names("a, b") == ("a", "b")
    for text in ("", "a,", ",a"):
        with pytest.raises(ArgumentTypeError, match="has an empty name"):
            names(text)


def test_what_black_and_white_become() -> None:
    assert pixel_range("0,255") == (0, 255)
    assert pixel_range("1, -1") == (1, -1)
    for text in ("", "1", "0,0", "0,1,2", "0,inf", "nan,1", "a,b"):
        with pytest.raises(ArgumentTypeError, match="two numbers such as 0,255"):
            pixel_range(text)
