"""The stack in the public header."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.measure.size import MethodStack, SizeMethod, StackPart
from orchestrator.measure.stack import with_stacks

HEADER = (
    "/* begin */\n\n"
    "/* The same sizes in structs: no flash unless they are used. */\n"
    "    0 /* p_person_forward: stack not known */};\n\n"
    "#undef ORCH_AT_LEAST\n#undef ORCH_ASSERT\n"
)
METHOD = SizeMethod(
    model="person",
    method="forward",
    arena_bytes=(64,),
    state_bytes=120,
    temporary_bytes=0,
    input_bytes=(16,),
    output_bytes=(16,),
    stack=MethodStack(
        load_bytes=656,
        run_bytes=584,
        entries=(
            StackPart(name="p_person_forward", stack_bytes=688),
            StackPart(name="p_person_forward_run", stack_bytes=672),
        ),
        unknown=(),
    ),
)


def test_every_function_has_a_constant() -> None:
    assert (
        with_stacks(HEADER, "p", [METHOD], compiler="gcc 12.2.0")
        == """\
/* begin */

/** Bytes of stack below the caller's, in the worst case; interrupts come on
 * top. Of loading, of running, and of each function, which may load.
 * Compiled by gcc 12.2.0: other compilers differ. */
#define P_PERSON_FORWARD_LOAD_STACK_BYTES 656
#define P_PERSON_FORWARD_RUN_STACK_BYTES 584
#define P_PERSON_FORWARD_CALL_STACK_BYTES 688
#define P_PERSON_FORWARD_CALL_RUN_STACK_BYTES 672

/** The worst of all. To have the stack of the calling task checked, define
 * P_STACK_AVAILABLE as its bytes before including this. */
#define P_STACK_BYTES 688
#ifdef P_STACK_AVAILABLE
ORCH_ASSERT(P_STACK_AVAILABLE >= P_STACK_BYTES);
#endif

/* The same sizes in structs: no flash unless they are used. */
    P_PERSON_FORWARD_CALL_STACK_BYTES};

#undef ORCH_AT_LEAST
#undef ORCH_ASSERT
"""
    )


def test_without_numbers_the_header_stays_as_it_is() -> None:
    assert with_stacks(HEADER, "p", [replace(METHOD, stack=None)], compiler="") == HEADER
    assert with_stacks(HEADER, "p", [], compiler="") == HEADER


def test_what_is_not_counted_is_named() -> None:
    assert METHOD.stack is not None
    stack = replace(METHOD.stack, unknown=("my_ops::fancy",))
    text = with_stacks(HEADER, "p", [replace(METHOD, stack=stack)], compiler="")
    assert "/* Not counted, frame size unknown:\n *   my_ops::fancy\n */" in text
