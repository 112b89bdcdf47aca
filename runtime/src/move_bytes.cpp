#include <string.h>

#include "orch/prepared.h"

namespace orch {

void move_bytes(const PreparedCall& prepared) {
  const MoveCall& call = static_cast<const MoveCall&>(prepared);
  const uint8_t* const from = static_cast<const uint8_t*>(call.input);
  uint8_t* const to = static_cast<uint8_t*>(call.out);
  size_t left = static_cast<size_t>(call.size_bytes);
  if (to <= from) {
    memmove(to, from, left);
    return;
  }
  // Up, in pieces that do not overlap where they go to: memcpy is the fastest.
  const size_t most = static_cast<size_t>(to - from);
  while (left != 0) {
    const size_t size = left < most ? left : most;
    left -= size;
    memcpy(to + left, from + left, size);
  }
}

}  // namespace orch
