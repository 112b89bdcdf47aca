#include "orch/status.h"

#include "orch/error.h"

namespace {

constexpr bool same(orch_status status, orch::Error error) {
  return static_cast<int>(status) == static_cast<int>(error);
}
static_assert(same(ORCH_OK, orch::Error::Ok) &&
                  same(ORCH_INVALID_PROGRAM, orch::Error::InvalidProgram) &&
                  same(ORCH_IMAGE_DAMAGED, orch::Error::ImageDamaged) &&
                  same(ORCH_MEMORY_NOT_SET, orch::Error::MemoryNotSet) &&
                  same(ORCH_SCRATCH_TOO_SMALL, orch::Error::ScratchTooSmall) &&
                  same(ORCH_NOT_DONE, orch::Error::NotDone) &&
                  same(ORCH_WRONG_FLOAT_MODE, orch::Error::WrongFloatMode),
              "status.h and error.h list the same codes");

}  // namespace

// The libraries of all products have the same function: linkers take one.
extern "C" __attribute__((weak)) const char* orch_status_text(
    orch_status status) noexcept {
  return orch::to_string(static_cast<orch::Error>(status));
}
