#include <string.h>

#include "orch/prepared.h"

namespace orch {
namespace {

/// Calls `row` with where each row of blocks lies in the input and goes to.
template <typename Row>
inline void for_rows(const CopyCall& call, Row&& row) {
  const uint8_t* from =
      static_cast<const uint8_t*>(call.input) + call.input_offset;
  uint8_t* to = static_cast<uint8_t*>(call.out) + call.out_offset;
  const BlockShape& shape = *call.shape;
  for (int32_t i = 0; i < shape.outer.count; ++i) {
    const uint8_t* row_from = from;
    uint8_t* row_to = to;
    for (int32_t j = 0; j < shape.middle.count; ++j) {
      row(row_from, row_to);
      row_from += shape.middle.read;
      row_to += shape.middle.written;
    }
    from += shape.outer.read;
    to += shape.outer.written;
  }
}

/// Copies items of kBytes, whose addresses are multiples of it. The axis is a
/// copy, so that it stays in registers: bytes could be written to any other.
template <size_t kBytes>
inline void copy_row(const uint8_t* from, uint8_t* to, BlockAxis axis) {
  for (int32_t k = axis.count; k > 0; --k) {
    memcpy(__builtin_assume_aligned(to, kBytes),
           __builtin_assume_aligned(from, kBytes), kBytes);
    from += axis.read;
    to += axis.written;
  }
}

}  // namespace

void copy_blocks(const PreparedCall& prepared) {
  const CopyCall& call = static_cast<const CopyCall&>(prepared);
  const BlockAxis& axis = call.shape->inner;
  const size_t bytes = static_cast<size_t>(call.shape->block_bytes);
  for_rows(call, [&axis, bytes](const uint8_t* from, uint8_t* to) {
    for (int32_t k = 0; k < axis.count; ++k) {
      memcpy(to, from, bytes);
      from += axis.read;
      to += axis.written;
    }
  });
}

void copy_items(const PreparedCall& prepared) {
  const CopyCall& call = static_cast<const CopyCall&>(prepared);
  const BlockAxis& axis = call.shape->inner;
  const int32_t bytes = call.shape->block_bytes;
  for_rows(call, [&axis, bytes](const uint8_t* from, uint8_t* to) {
    if (bytes == 4) {
      copy_row<4>(from, to, axis);
    } else if (bytes == 2) {
      copy_row<2>(from, to, axis);
    } else {
      copy_row<1>(from, to, axis);
    }
  });
}

}  // namespace orch
