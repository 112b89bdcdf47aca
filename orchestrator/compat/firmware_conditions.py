"""Conditions of a firmware's kernels, asked of the calls of a newer program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.condition import refusal
from orchestrator.compat.firmware import ConditionRule
from orchestrator.core.operator import parse_schema
from orchestrator.selection.call_facts import MethodFacts, argument_facts

if TYPE_CHECKING:
    from orchestrator.compat.firmware import Firmware
    from orchestrator.program.program import Method, Program
    from orchestrator.selection.op_info import OpCall
    from orchestrator.selection.resolution import Resolution


def condition_rules(resolution: Resolution) -> tuple[ConditionRule, ...]:
    """What kernels require, of operators that have a single one.

    Where there are several, the device decides by the key which one a call gets.
    """
    return tuple(
        ConditionRule(
            operator=operator.name,
            conditions=operator.bindings[0].kernel.requires,
            schema=operator.schema.text,
        )
        for operator in resolution.operators
        if len(operator.bindings) == 1 and operator.bindings[0].kernel.requires
    )


class FirmwareConditions:
    """Asks the calls of a method of a new program."""

    def __init__(self, firmware: Firmware, program: Program, method: Method) -> None:
        self._rules = {rule.operator: rule for rule in firmware.conditions}
        self._constant = program.data_bytes
        self._method = method
        self._facts = MethodFacts.of(method)

    def refusal(self, call: OpCall) -> str:
        """Which condition of the firmware's kernel a call does not meet; "" if none."""
        rule = self._rules.get(call.operator)
        if rule is None:
            return ""
        instruction = self._method.instructions[call.instruction]
        args = instruction.args  # type: ignore[union-attr]  # of a kernel call
        schema = parse_schema(rule.schema)
        arguments = argument_facts(
            self._method.values, args, schema, self._facts, self._constant
        )
        found = refusal(rule.conditions, schema, arguments)
        if found is None:
            return ""
        reason = f": {found.reason}" if found.reason else ""
        return f"it requires {found.condition}{reason}"
