"""Functions of the secure side of TrustZone that the non-secure side may call.

A file for the secure side, compiled with `-mcmse` by the application, and a header with
the API for the other one. Arguments come in a struct: an entry function takes at most
what fits into four registers.

Source: Armv8-M Security Extensions: Requirements on Development Tools, ACLE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.ports import c_parameters, c_scalar
from orchestrator.memory.plan import identifier
from orchestrator.program.interface import NUMBER_LISTS
from orchestrator.program.values import StringValue, TensorValue

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod, Port

FOLDER: Final = "nonsecure"
"""Of both files in the build folder."""


def nonsecure_files(profile: str, head: str, methods: Sequence[ApiMethod]) -> list[GeneratedFile]:
    """Entry functions of a product, and the header of the non-secure side."""
    entries = [method for method in methods if _has_entry(method)]
    left_out = [method for method in methods if method not in entries]
    return [
        GeneratedFile(f"{FOLDER}/{profile}_nonsecure.h", _header(profile, head, entries, left_out)),
        GeneratedFile(f"{FOLDER}/{profile}_nonsecure.c", _source(profile, head, entries)),
    ]


def _has_entry(method: ApiMethod) -> bool:
    """Whether it has arguments, arrays and numbers alone, and arrays are copied."""
    lists = (StringValue, *NUMBER_LISTS)
    found = [isinstance(port.value, lists) or port.is_given for port in method.ports]
    return bool(found) and not any(found) and not method.by_rows


def _header(
    profile: str, head: str, entries: Sequence[ApiMethod], left_out: Sequence[ApiMethod]
) -> str:
    guard = f"{identifier(profile).upper()}_NONSECURE_H_"
    missing = "".join(
        f"/* No entry function: {method.model}.{method.method.name}, which has lists,"
        " rows or\n * memory of yours, or nothing. */\n"
        for method in left_out
    )
    return f"""\
/* {head} */
/* {profile}, as the non-secure side of TrustZone calls it: the secure side compiles
 * {profile}_nonsecure.c. Arrays lie in non-secure memory. While a call runs, others,
 * of interrupt handlers, return ORCH_NOT_DONE. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#include "orch/status.h"

#ifdef __cplusplus
#define ORCH_AT_LEAST(count) count
extern "C" {{
#else
#define ORCH_AT_LEAST(count) static count
#endif

{missing}{"".join(map(_declaration, entries))}
#undef ORCH_AT_LEAST
#ifdef __cplusplus
}}
#endif

#endif
"""


def _struct(method: ApiMethod) -> str:
    return f"struct {method.base}_arguments"


def _declaration(method: ApiMethod) -> str:
    entry, ports = f"{method.base}_entry", method.ports
    lines = "".join(f"  {text};\n" for text, _ in _members(ports))
    names = ", ".join(name for _, name in _members(ports))
    return (
        f"{_struct(method)} {{\n{lines}}};\n"
        f"ORCH_NODISCARD orch_status {entry}(const {_struct(method)}* arguments);\n\n"
        "#ifndef ORCH_SECURE_SIDE\n"
        f"ORCH_NODISCARD static inline orch_status {method.base}("
        f"{c_parameters(method)}) {{\n"
        f"  const {_struct(method)} arguments = {{{names}}};\n"
        f"  return {entry}(&arguments);\n}}\n"
        "#endif\n\n"
    )


def _members(ports: Sequence[Port]) -> Iterator[tuple[str, str]]:
    """Declaration and name of each member of the struct of arguments."""
    for port in ports:
        const, name = "const " if port.is_input else "", port.name
        if isinstance(port.value, TensorValue):
            yield f"{const}{port.c_type}* {name}", name
            if port.value.is_dynamic:
                yield f"{const}int32_t* {name}_sizes", f"{name}_sizes"
        else:
            yield f"{c_scalar(port.value)}{'' if port.is_input else '*'} {name}", name


def _source(profile: str, head: str, entries: Sequence[ApiMethod]) -> str:
    functions = "\n".join(map(_entry, entries))
    return f"""\
/* {head} */
/* Entry functions for the non-secure side, of the secure one: compile with -mcmse, and
 * link with --cmse-implib. Nothing that the non-secure side gives is trusted: arguments
 * are read once, and addresses are checked to be non-secure memory that it may use. */
#define ORCH_SECURE_SIDE 1

#include <arm_cmse.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "{profile}_nonsecure.h"

#include "{profile}.h"

/* Whether a call runs: the non-secure side may interrupt it and call again. */
static unsigned char busy;

static int may_read(const volatile void* from, size_t size) {{
  return cmse_check_address_range((void*)(uintptr_t)from, size,
                                  CMSE_NONSECURE | CMSE_MPU_READ) != NULL;
}}

static int may_write(void* to, size_t size) {{
  return cmse_check_address_range(to, size,
                                  CMSE_NONSECURE | CMSE_MPU_READWRITE) != NULL;
}}

{functions}"""


def _entry(method: ApiMethod) -> str:
    base, ports = method.base, method.ports
    begin = "__attribute__((cmse_nonsecure_entry))\n"
    call = (
        "  if (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) return ORCH_NOT_DONE;\n"
        f"  const orch_status status = {base}({', '.join(_words(ports))});\n"
        "  __atomic_clear(&busy, __ATOMIC_RELEASE);\n"
    )
    read = "".join(f"  {declared} = from->{name};\n" for declared, name in _members(ports))
    checks = " ||\n      ".join(check for port in ports for check in _checks(port))
    before = "".join(line for port in ports for line in _before(port))
    after = "".join(line for port in ports for line in _after(port))
    stored = f"  if (status == ORCH_OK) {{\n{after}  }}\n" if after else ""
    checked = f"  if ({checks}) return ORCH_INVALID_ARGUMENT;\n" if checks else ""
    return f"""\
{begin}orch_status {base}_entry(const {_struct(method)}* arguments) {{
  const volatile {_struct(method)}* const from = arguments;
  if ((uintptr_t)from % sizeof(void*) != 0 || !may_read(from, sizeof *from)) {{
    return ORCH_INVALID_ARGUMENT;
  }}
{read}{checked}{before}{call}{stored}  return status;
}}
"""


def _words(ports: Sequence[Port]) -> Iterator[str]:
    """Arguments of the function of the API."""
    for port in ports:
        is_tensor = isinstance(port.value, TensorValue)
        yield port.name if is_tensor or port.is_input else f"&own_{port.name}"
        if isinstance(port.value, TensorValue) and port.value.is_dynamic:
            yield f"own_{port.name}_sizes"


def _checks(port: Port) -> Iterator[str]:
    """Conditions under which an argument is refused."""
    check = "!may_read" if port.is_input else "!may_write"
    if isinstance(port.value, TensorValue):
        count = max(port.value.numel, 1)
        yield f"{check}({port.name}, {count} * sizeof *{port.name})"
        if port.value.is_dynamic:
            yield f"{check}({port.name}_sizes, sizeof(int32_t) * {_rank(port.value)})"
    elif not port.is_input:
        yield f"{check}({port.name}, sizeof *{port.name})"


def _before(port: Port) -> Iterator[str]:
    """Secure copies of what is read more than once, or written by the product."""
    if isinstance(port.value, TensorValue):
        if port.value.is_dynamic:
            own = f"own_{port.name}_sizes"
            yield f"  int32_t {own}[{_rank(port.value)}];\n"
            if port.is_input:
                yield f"  memcpy({own}, {port.name}_sizes, sizeof {own});\n"
    elif not port.is_input:
        yield f"  {c_scalar(port.value)} own_{port.name};\n"


def _after(port: Port) -> Iterator[str]:
    """What goes back to the non-secure side besides arrays."""
    if port.is_input:
        return
    if not isinstance(port.value, TensorValue):
        yield f"    memcpy({port.name}, &own_{port.name}, sizeof own_{port.name});\n"
    elif port.value.is_dynamic:
        own = f"own_{port.name}_sizes"
        yield f"    memcpy({port.name}_sizes, {own}, sizeof {own});\n"


def _rank(value: TensorValue) -> int:
    return max(len(value.sizes), 1)
