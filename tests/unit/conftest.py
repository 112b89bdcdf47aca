"""Unit tests reach no device."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def _reached(*_: object) -> NoReturn:
    raise AssertionError("a unit test reaches for a device")


@pytest.fixture(scope="session", autouse=True)
def _no_device() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.build.on_device.connected", _reached)
        patch.setattr("orchestrator.build.firmware.open_serial", _reached)
        yield
