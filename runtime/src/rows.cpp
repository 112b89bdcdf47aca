#include "orch/rows.h"

#include <string.h>

namespace orch {

#if ORCH_GIVEN_ROWS
namespace {

/// Known before the method is ready.
const StepTable& steps_of(const ModelMethod& method) {
  return *method.prelinked->image.steps;
}

}  // namespace

Error begin_rows(const ModelMethod& method) {
  ORCH_TRY(prepare(method));
  const StepTable& table = steps_of(method);
  *table.run = {table.steps.begin(), 0, nullptr, 0, table.in_bytes};
  execute(image_of(method));
  return Error::Ok;
}

void rows_came(const ModelMethod& method) {
  RowRun& run = *steps_of(method).run;
  run.missing -= run.room;
  run.room = 0;
  execute(image_of(method));
}

Error push_rows(const ModelMethod& method, const void* rows, uint32_t count,
                uint32_t row_bytes, bool flips) {
  RowRun& run = *steps_of(method).run;
  ORCH_CHECK(count <= run.missing / row_bytes, Error::InvalidArgument);
  const uint8_t* from = static_cast<const uint8_t*>(rows);
  uint32_t left = count * row_bytes;
  while (left != 0) {
    const uint32_t bytes = left < run.room ? left : run.room;
    memcpy(run.to, from, bytes);
    for (uint32_t i = 0; flips && i < bytes; ++i) run.to[i] ^= 0x80U;
    from += bytes;
    left -= bytes;
    if (bytes == run.room) {
      rows_came(method);
    } else {
      run.to += bytes;
      run.room -= bytes;
      run.missing -= bytes;
    }
  }
  return Error::Ok;
}

Error finish_rows(const ModelMethod& method) {
  const RowRun& run = *steps_of(method).run;
  ORCH_CHECK(run.next != nullptr && run.missing == 0, Error::InvalidArgument);
  return Error::Ok;
}
#endif

}  // namespace orch
