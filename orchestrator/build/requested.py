"""What a profile asks for besides what its models use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.selection.op_info import Origin, SelectedOperator

if TYPE_CHECKING:
    from orchestrator.profile import Profile


def requested(profile: Profile) -> list[SelectedOperator]:
    """Operators that the profile names one by one."""
    include = Origin(source="operators.include")
    wanted = [
        SelectedOperator(name=name, every_dtype=True, origins=(include,))
        for name in profile.operators.include
    ]
    by_key = Origin(source="dtypes.operators")
    wanted += [
        SelectedOperator(
            name=request.operator,
            keys=request.keys,
            dtypes=request.dtypes,
            origins=(by_key,),
        )
        for request in profile.dtypes.operators
    ]
    return wanted
