#include <string.h>

#include "orch/prepared.h"

namespace orch {

void move_bytes(const PreparedCall& prepared) {
  const MoveCall& call = static_cast<const MoveCall&>(prepared);
  memmove(call.out, call.input, static_cast<size_t>(call.size_bytes));
}

}  // namespace orch
