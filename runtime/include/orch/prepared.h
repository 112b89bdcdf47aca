// Calls that the build prepared.
#pragma once

#include <stdint.h>

namespace orch {

/// A call of a kernel that reads, checks and finds out nothing: the build made
/// a struct of what it needs, in flash. Kernels derive theirs from this one.
/// Trusted.
struct PreparedCall {
  void (*run)(const PreparedCall& call);
};

/// Bytes that move within an arena: rows of an image that are still needed.
struct MoveCall : PreparedCall {
  const void* input;
  void* out;  // may overlap the input
  int32_t size_bytes;
};

/// Runs a MoveCall.
void move_bytes(const PreparedCall& call);

/// A loop over blocks: how many, and bytes from one to the next.
struct BlockAxis {
  int32_t count;
  int32_t read;
  int32_t written;
};

/// Blocks of bytes, and where they lie.
struct BlockShape {
  int32_t block_bytes;
  BlockAxis outer;
  BlockAxis middle;
  BlockAxis inner;
};

/// Blocks of bytes that lie elsewhere in the output. They go in order: the
/// input may be the end of the output where no block goes to one that is still
/// to come.
struct CopyCall : PreparedCall {
  const void* input;
  void* out;
  const BlockShape* shape;
  int32_t input_offset;  // bytes before the first block
  int32_t out_offset;    // likewise
};

/// Runs a CopyCall.
void copy_blocks(const PreparedCall& call);

/// Runs a CopyCall whose blocks are items of 1, 2 or 4 bytes.
void copy_items(const PreparedCall& call);

}  // namespace orch
