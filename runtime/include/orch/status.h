/** @file
 * Results of the generated functions, for C and C++.
 *
 * A status is one byte: an enum of C has the size that the flags of each
 * compiler give it, so that a program and a library might disagree. */
#ifndef ORCH_STATUS_H_
#define ORCH_STATUS_H_

#include <stdint.h>

/** Warns where a status is ignored, with compilers that can. */
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
  /** Success. */
  ORCH_OK = 0,
  /** The program is damaged: an offset, index, size or kind is out of
   * range. */
  ORCH_INVALID_PROGRAM,
  /** The file is no ET12 program, uses a feature this runtime has not, or
   * has a field of a newer ExecuTorch that it does not know. */
  ORCH_UNSUPPORTED_PROGRAM,
  /** The program needs an operator that is not linked. */
  ORCH_OPERATOR_MISSING,
  /** The operator is linked without a dtype that the call needs. */
  ORCH_DTYPE_NOT_SELECTED,
  /** The program needs a delegate that is not linked. */
  ORCH_DELEGATE_MISSING,
  /** No such method, input or output. */
  ORCH_NOT_FOUND,
  /** The block given for the method state is too small. */
  ORCH_STATE_TOO_SMALL,
  /** An arena is missing or smaller than the program's plan. */
  ORCH_ARENA_TOO_SMALL,
  /** A block is not aligned as required. */
  ORCH_MISALIGNED,
  /** A kernel refused its arguments: shape, stride, index or value. */
  ORCH_INVALID_ARGUMENT,
  /** A tensor would grow past its planned size. */
  ORCH_SHAPE_TOO_LARGE,
  /** The kernel has no code for this combination of arguments. */
  ORCH_NOT_SUPPORTED,
  /** More instructions ran than the caller allowed. */
  ORCH_INSTRUCTION_LIMIT,
  /** Flash does not hold what was linked: a checksum is wrong. */
  ORCH_IMAGE_DAMAGED,
  /** The memory of an input or output was never set. */
  ORCH_MEMORY_NOT_SET,
  /** A scratch tensor is smaller than its kernel needs. */
  ORCH_SCRATCH_TOO_SMALL,
  /** A run in parts goes on: there are instructions left. */
  ORCH_NOT_DONE,
  /** The FPU rounds otherwise than to nearest, or takes subnormal numbers
   * for 0. */
  ORCH_WRONG_FLOAT_MODE
};

/** Name of a status, "InvalidProgram". Never null. */
const char* orch_status_text(orch_status status) ORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
