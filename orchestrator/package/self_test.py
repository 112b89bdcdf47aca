"""The self test of a package: its methods on a case, every bit compared.

It is the application of `run` with the calls in flash instead of a file, so that it
knows every kind of input and output. It links only if the program calls it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.package.sources import byte_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Calls of a product, and what came out.

    Args:
        request: As `run` sends it to the firmware.
        response: What the firmware wrote, without times.
        calls: Of each call: `model.method`, and where it ends in the response.
    """

    request: bytes
    response: bytes
    calls: tuple[tuple[str, int], ...]


def self_test_header(head: str, base: str, case: Case) -> str:
    """The header of the self test.

    Args:
        head: Text of the first line.
        base: Name of the product in C.
        case: What it runs.
    """
    guard = f"{base.upper()}_SELF_TEST_H_"
    names = ", ".join(dict.fromkeys(name for name, _ in case.calls))
    return f"""\
/* {head} */
#ifndef {guard}
#define {guard}

#include "orch/status.h"

#ifdef __cplusplus
extern "C" {{
#endif

/* Runs {names} on the case of the package, and compares every bit of the
 * outputs. Methods are reset before, and keep the state that the case leaves.
 *
 * Returns ORCH_OK; the status of a method that failed; ORCH_IMAGE_DAMAGED if an
 * output has other bits. `failed`, unless null, then gets the name of the method,
 * "model.method"; else null. */
orch_status {base}_self_test(const char** failed);

#ifdef __cplusplus
}}
#endif

#endif
"""


def self_test_source(
    head: str,
    base: str,
    case: Case,
    *,
    defines: Iterable[tuple[str, str]],
    config: str,
    runner: str,
    header: str,
) -> str:
    """The source of the self test.

    Args:
        head: Text of the first line.
        base: Name of the product in C.
        case: What it runs.
        defines: Macros of the runner, (name, value).
        config: Header with the macros of all sources, relative to this one.
        runner: The runner, likewise.
        header: Header of the self test, likewise.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in defines)
    ends = "".join(f'    {{{end}, "{name}"}},\n' for name, end in case.calls)
    return f"""\
/* {head} */
{macros}#include "{config}"
#include "{header}"

#define orch_application {base}_self_test_calls
#include "{runner}"

namespace {{

constexpr uint8_t kRequest[{len(case.request)}] = {{
{byte_rows(case.request)}}};

constexpr uint8_t kResponse[{len(case.response)}] = {{
{byte_rows(case.response)}}};

/* Ends of the calls in the response. */
struct Call {{
  uint32_t end;
  const char* name;
}};
constexpr Call kCalls[{len(case.calls)}] = {{
{ends}}};

struct Progress {{
  uint32_t read;
  uint32_t written;
  orch_status status;
  const char* failed;
}};
Progress progress;

}}  // namespace

namespace orch::platform {{

File open_for_reading(const char*) {{ return 0; }}
File open_for_writing(const char*) {{ return 0; }}
void close(File) {{}}
void log(const char*) {{}}
uint64_t ticks() {{ return 0; }}

bool read(File, void* data, size_t size) {{
  if (size > sizeof kRequest - progress.read) return false;
  memcpy(data, kRequest + progress.read, size);
  progress.read += static_cast<uint32_t>(size);
  return true;
}}

/* Compares; the first difference ends the test. */
bool write(File, const void* data, size_t size) {{
  const uint32_t begin = progress.written;
  progress.written += static_cast<uint32_t>(size);
  if (size <= sizeof kResponse - begin &&
      memcmp(data, kResponse + begin, size) == 0) {{
    return true;
  }}
  uint32_t start = sizeof(uint32_t); /* after the magic number */
  for (const Call& call : kCalls) {{
    progress.failed = call.name;
    if (begin < call.end) break;
    start = call.end;
  }}
  progress.status = ORCH_IMAGE_DAMAGED;
  uint32_t error = 0;
  if (begin == start && size >= sizeof error) memcpy(&error, data, sizeof error);
  if (error != 0) progress.status = static_cast<orch_status>(error);
  return false;
}}

}}  // namespace orch::platform

extern "C" orch_status {base}_self_test(const char** failed) {{
  progress = {{0, 0, ORCH_OK, nullptr}};
  orch_application("", "");
  if (progress.status == ORCH_OK && progress.written != sizeof kResponse) {{
    progress.status = ORCH_IMAGE_DAMAGED; /* the calls themselves are damaged */
  }}
  if (failed != nullptr) *failed = progress.failed;
  return progress.status;
}}
"""
