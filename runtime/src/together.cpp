#include "orch/together.h"

namespace orch {

Error start_together(const ModelMethod& method,
                     Span<const ModelMethod* const> all,
                     Error (*start)(const ModelMethod& method)) {
  for (const ModelMethod* other : all) {
    if (other->loaded->state_used == 0) (void)start(*other);
  }
  if (method.loaded->state_used != 0) return Error::Ok;
  const Error error = start(method);
  for (const ModelMethod* other : all) unload(*other);
  return error;
}

}  // namespace orch
