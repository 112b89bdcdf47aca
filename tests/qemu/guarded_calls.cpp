// An application in the place of the runner: carries out methods and looks for
// writes beside their tensors, where it knows all of these.
//
// guarded_calls.py is the other side; it makes guarded_rows.h, and places the
// tensors of a method of one call with gaps between them. The request has the
// inputs, one after the other. The response has, per method, three words: the
// status, the bytes outside of tensors that changed, the bytes of the input
// that changed; and the output.

#include <stdint.h>
#include <string.h>

#include "guarded_rows.h"
#include "orch/platform.h"

namespace {

namespace platform = orch::platform;

constexpr uint8_t kPattern = 0xA5;

/// Far more than an input needs.
alignas(16) uint8_t copy[48 * 1024];

/// Runs a method: what is counted.
extern "C" __attribute__((noinline)) orch_status guarded_run(const Row& row) {
  const orch_status status = row.run();
  asm volatile("" ::: "memory");  // not a tail call: it returns from here
  return status;
}

bool is_inside(const Row& row, uint32_t at) {
  for (const Block& block : row.blocks) {
    if (at >= block.begin && at < block.end) return true;
  }
  return false;
}

uint32_t differing(const uint8_t* a, const uint8_t* b, uint32_t bytes) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < bytes; ++i) count += a[i] != b[i];
  return count;
}

bool carry_out(const Row& row, platform::File from, platform::File to) {
  if (row.input_bytes > sizeof copy) return false;
  uint8_t* const input = static_cast<uint8_t*>(row.input());
  uint8_t* const arena = input - row.input_offset;
  memset(arena, kPattern, row.arena_bytes);
  if (!platform::read(from, copy, row.input_bytes)) return false;
  memcpy(input, copy, row.input_bytes);
  const uint32_t status = guarded_run(row);
  uint32_t changed = 0;
  for (uint32_t i = 0; i < row.arena_bytes; ++i) {
    changed += arena[i] != kPattern && !is_inside(row, i);
  }
  const uint32_t intact = row.arena_bytes == 0 ? 0 : row.input_bytes;
  const uint32_t words[3] = {status, changed, differing(input, copy, intact)};
  return platform::write(to, words, sizeof words) &&
         platform::write(to, row.output(), row.output_bytes);
}

}  // namespace

int orch_application(const char* request, const char* response) {
  const platform::File from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  if (from < 0 || to < 0) return 3;
  for (const Row& row : kRows) {
    if (!carry_out(row, from, to)) return 4;
  }
  platform::close(from);
  platform::close(to);
  return 0;
}
