// Whether flash still holds what was linked.
//
// The build computes a checksum of each block; what is compared with it is read
// from flash. Products without `[integrity]` in their profile have none of
// this.
#pragma once

#include <stdint.h>

#include "orch/error.h"
#include "orch/method.h"
#include "orch/span.h"
#include "orch/value.h"

namespace orch {

/// Bytes in flash, and the checksum they had when they were linked.
struct CheckedBytes {
  const void* at;
  uint32_t count;
  uint32_t crc;
};

/// CRC-32 as in zip and PNG: polynomial 0xEDB88320 (reflected), initial value
/// and final exclusive or 0xFFFFFFFF. Up to 3 wrong bits in 11 KiB, and any one
/// or two in 512 MiB, are always noticed; other damage but one time in 2^32.
///
/// `crc` is that of the bytes before, 0 for none.
uint32_t crc32(const void* bytes, uint32_t count, uint32_t crc = 0);

/// Errors: ImageDamaged.
Error check_bytes(Span<const CheckedBytes> blocks);

/// Compares what the tables of a prelinked method hold besides addresses: three
/// words per value, then three per instruction. Errors: ImageDamaged.
Error check_tables(Span<const Value> values,
                   Span<const Instruction> instructions, uint32_t crc);

}  // namespace orch
