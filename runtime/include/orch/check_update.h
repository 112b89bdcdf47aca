// Checks signed updates for the generated functions of a product.
#pragma once

#include <stdint.h>

#include "orch/update.h"

namespace orch {

/// What a firmware accepts for one of its models.
struct UpdateTarget {
  uint8_t identity[32];
  char model[40];
  uint32_t firmware_version;
};

/// Checks everything but the program itself. `update` does not change
/// meanwhile, nor until the program is no longer used.
orch_update_result check_update(const UpdateTarget& target, const void* update,
                                uint32_t size, uint32_t lowest_version,
                                const orch_update_trust& trust);

}  // namespace orch
