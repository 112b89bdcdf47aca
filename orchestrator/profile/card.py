"""`[models.card]`: what only the user knows of a model, for the SBOM."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from orchestrator.profile.fields import bad_value
from orchestrator.profile.table import Table


def _check_license(value: str) -> str:
    """The expression as SPDX writes it."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression  # noqa: PLC0415  # few profiles have one

    try:
        return canonicalize_license_expression(value)
    except InvalidLicenseExpression as error:
        raise bad_value(
            value,
            expected="a licence expression of SPDX, such as Apache-2.0 or MIT AND CC-BY-4.0",
            hint="https://spdx.org/licenses lists names; your own is LicenseRef-NAME",
        ) from error


class CardTable(Table):
    """What only you know of a model: docs/provenance.md.

    Nothing of it reaches the device.
    """

    license: Annotated[StrictStr, AfterValidator(_check_license)] | None = Field(
        default=None,
        description="Licence of the model, as an SPDX expression; one that SPDX does"
        " not list is `LicenseRef-NAME`. Default: not stated.",
        examples=["CC-BY-4.0"],
    )
    authors: tuple[StrictStr, ...] = Field(
        default=(), description="Who made it.", examples=[["Audio team"]]
    )
    datasets: tuple[StrictStr, ...] = Field(
        default=(), description="Data that it was trained on.", examples=[["Speech Commands v2"]]
    )
    intended_use: StrictStr | None = Field(
        default=None,
        description="What it is for. Default: not stated.",
        examples=["Twelve spoken words, within a metre"],
    )
    limitations: StrictStr | None = Field(
        default=None,
        description="Where it does not work. Default: not stated.",
        examples=["Speakers younger than ten"],
    )
