#include "orch/together.h"

#include <string.h>

namespace orch {

Error start_together(const ModelMethod& method,
                     Span<const ModelMethod* const> all,
                     Error (*start)(const ModelMethod& method)) {
#if ORCH_INDEX_BYTES == 4
  bool is_first = method.program.size() != 0;
  for (const ModelMethod* other : all) {
    is_first = is_first && other->loaded->state_used == 0;
  }
  // The arena with memory id 2: the loader leaves in it what others have.
  if (is_first) memset(method.arenas[1].data(), 0, method.arenas[1].size());
#endif
  for (const ModelMethod* other : all) {
    if (other->loaded->state_used == 0) (void)start(*other);
  }
  if (method.loaded->state_used != 0) return Error::Ok;
  const Error error = start(method);
  for (const ModelMethod* other : all) unload(*other);
  return error;
}

}  // namespace orch
