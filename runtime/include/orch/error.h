// Error codes of the runtime. Codes are stable: new ones go to the end.
#pragma once

#include <stdint.h>

namespace orch {

/// What went wrong: status.h says more. Log text can be compiled out, codes
/// cannot.
// clang-format 14 takes the attribute for an initialiser.
// clang-format off
enum class [[nodiscard]] Error : uint8_t {
  Ok = 0,
  InvalidProgram,
  UnsupportedProgram,
  OperatorMissing,
  DtypeNotSelected,
  DelegateMissing,
  NotFound,
  StateTooSmall,
  ArenaTooSmall,
  Misaligned,
  InvalidArgument,
  ShapeTooLarge,
  NotSupported,
  InstructionLimit,
  ImageDamaged,
  MemoryNotSet,
  ScratchTooSmall,
  NotDone,
  WrongFloatMode,
};
// clang-format on

/// Name of the code, "InvalidProgram". Never null.
const char* to_string(Error error);

}  // namespace orch

/// 1 in kernels of products that are prelinked and whose calls the build has
/// proved: each meets every condition that its kernel requires.
#ifndef ORCH_PROVED_CALLS
#define ORCH_PROVED_CALLS 0
#endif

namespace orch {
inline constexpr bool kProvedCalls = ORCH_PROVED_CALLS != 0;
}  // namespace orch

/// Returns `error` from the enclosing function unless `condition` holds, a
/// condition on what tensors hold when the kernel runs: no build can prove it.
#define ORCH_CHECK_DATA(condition, error) \
  do {                                    \
    if (!(condition)) return (error);     \
  } while (false)

/// The same for a condition on the arguments of a call: dtypes, sizes,
/// parameters. Not evaluated where the build has proved it.
#define ORCH_CHECK(condition, error)                           \
  do {                                                         \
    if (!::orch::kProvedCalls && !(condition)) return (error); \
  } while (false)

/// Returns the error of `expression` from the enclosing function unless it is
/// Ok; for expressions with an ORCH_CHECK_DATA in them.
#define ORCH_TRY_DATA(expression)                             \
  do {                                                        \
    const ::orch::Error orch_error_ = (expression);           \
    if (orch_error_ != ::orch::Error::Ok) return orch_error_; \
  } while (false)

/// The same for expressions that check arguments only: evaluated, but known to
/// be Ok where the build has proved it.
#define ORCH_TRY(expression)                                       \
  do {                                                             \
    const ::orch::Error orch_error_ = (expression);                \
    if (!::orch::kProvedCalls && orch_error_ != ::orch::Error::Ok) \
      return orch_error_;                                          \
  } while (false)
