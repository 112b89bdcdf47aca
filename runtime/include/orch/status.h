/* Results of the generated functions, for C and C++. The numbers are those of
 * orch::Error, which error.h documents.
 *
 * A status is one byte: an enum of C has the size that the flags of each
 * compiler give it, so that a program and a library might disagree. */
#ifndef ORCH_STATUS_H_
#define ORCH_STATUS_H_

#include <stdint.h>

/* Warns where a status is ignored, with compilers that can. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define ORCH_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define ORCH_NODISCARD __attribute__((warn_unused_result))
#else
#define ORCH_NODISCARD
#endif

#ifdef __cplusplus
#define ORCH_NOEXCEPT noexcept
#else
#define ORCH_NOEXCEPT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
enum orch_status : uint8_t {
#else
typedef uint8_t orch_status;
enum {
#endif
  ORCH_OK = 0,
  ORCH_INVALID_PROGRAM,
  ORCH_UNSUPPORTED_PROGRAM,
  ORCH_OPERATOR_MISSING,
  ORCH_DTYPE_NOT_SELECTED,
  ORCH_DELEGATE_MISSING,
  ORCH_NOT_FOUND,
  ORCH_STATE_TOO_SMALL,
  ORCH_ARENA_TOO_SMALL,
  ORCH_MISALIGNED,
  ORCH_INVALID_ARGUMENT,
  ORCH_SHAPE_TOO_LARGE,
  ORCH_NOT_SUPPORTED,
  ORCH_INSTRUCTION_LIMIT,
  ORCH_IMAGE_DAMAGED,
  ORCH_MEMORY_NOT_SET,
  ORCH_SCRATCH_TOO_SMALL,
  ORCH_NOT_DONE
};

/* Name of a status, "InvalidProgram". Never null. */
const char* orch_status_text(orch_status status) ORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
