// Inputs and outputs that lie in memory of the caller: kernels read and write
// it in place.
#pragma once

#include "orch/error.h"
#include "orch/model.h"

namespace orch {

/// Gives an input or output its memory, at least as many bytes as the program
/// says; null takes it away. Errors: Misaligned, unless it lies at a multiple
/// of the item size.
Error set_memory(Value& value, const void* memory);

/// Whether all inputs and outputs have their memory. Errors: MemoryNotSet.
Error check_memory(const ModelMethod& method);

/// Takes the memory of all inputs and outputs away that the caller gave.
void clear_memory(const ModelMethod& method);

/// Writes the sizes of an output: as many as it has dimensions.
void get_sizes(const ModelMethod& method, uint32_t index, int32_t* sizes);

}  // namespace orch
