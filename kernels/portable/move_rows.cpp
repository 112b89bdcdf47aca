#include <stdint.h>
#include <string.h>

#include "orch/kernel.h"
#include "prepared.h"

namespace orch::portable {

// Prepared: a call of any operator that moves whole rows of one tensor, as
// slices do.
void move_rows(const PreparedCall& prepared) {
  const auto& call = static_cast<const MoveRowsCall&>(prepared);
  const uint8_t* const input =
      static_cast<const uint8_t*>(call.input) + call.first;
  uint8_t* to = static_cast<uint8_t*>(call.out);
  for (int32_t i = 0; i < call.sizes[0]; ++i) {
    for (int32_t j = 0; j < call.sizes[1]; ++j) {
      const uint8_t* from = input + i * call.steps[0] + j * call.steps[1];
      for (int32_t k = 0; k < call.sizes[2]; ++k) {
        memmove(to, from, static_cast<size_t>(call.row));
        from += call.steps[2];
        to += call.row;
      }
    }
  }
}

}  // namespace orch::portable
