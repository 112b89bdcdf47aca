// Firmware that makes random calls of the int8 kernels in two variants. The
// request has two words: seed and number of calls. The response has how many
// calls had an output, by kind, how many of them differed, and the first of
// these as its numbers.
#include <stdint.h>
#include <string.h>

#include "kernel_variant.h"
#include "orch/platform.h"
#include "random_numbers.h"

namespace {

namespace platform = orch::platform;

constexpr int32_t kMostItems = 24 * 1024;
constexpr int32_t kMostChannels = 72;
constexpr int32_t kGuard = 64;
constexpr int8_t kUntouched = 0x5A;

int8_t inputs[kMostItems];
int8_t weights[kMostItems];
int8_t found[kMostItems + 2 * kGuard];
int8_t expected[kMostItems + 2 * kGuard];
int32_t biases[kMostChannels];
int32_t multipliers[kMostChannels];
int32_t shifts[kMostChannels];

/// Any number, often one at an edge.
int32_t any() {
  constexpr int32_t kEdges[] = {
      INT32_MIN, INT32_MIN + 1, INT32_MAX, 1 << 30, -(1 << 30), 0, 1,
      -1,        INT32_MAX - 1};
  if (one_in(4)) return kEdges[between(0, 8)];
  return static_cast<int32_t>(next()) >> between(0, 31);
}

void fill(int8_t* items, bool extreme) {
  for (int32_t i = 0; i < kMostItems; ++i) {
    const uint32_t bits = next();
    items[i] = static_cast<int8_t>(bits);
    if (extreme) items[i] = (bits & 256) != 0 ? 127 : -128;
  }
}

void make(Problem& problem) {
  problem.kind = static_cast<ProblemKind>(between(0, 2));
  const bool deep = one_in(4);
  problem.batch = between(1, 2);
  problem.groups = 1;
  for (int i = 0; i < 2; ++i) {
    problem.kernel[i] = deep ? between(1, 3) : between(1, 5);
    problem.stride[i] = between(1, 3);
    problem.padding[i] = between(0, 3);
    problem.dilation[i] = one_in(4) ? between(2, 3) : 1;
  }
  problem.height = between(1, deep ? 6 : 12);
  problem.width = one_in(8) ? between(13, 60) : between(1, deep ? 6 : 12);
  problem.channels = between(1, deep ? 40 : 9);
  problem.outputs = between(1, deep ? 24 : 9);
  if (problem.kind == ProblemKind::kMatrix) {
    problem.batch = between(1, 9);
    problem.channels = between(1, 150);
    problem.outputs = between(1, 40);
  } else if (problem.kind == ProblemKind::kDepthwise) {
    const int32_t multiplier = one_in(2) ? 1 : between(2, 8);
    problem.outputs = problem.channels * multiplier;
    while (problem.outputs > kMostChannels) {
      problem.outputs -= problem.channels;
    }
    if (one_in(4)) problem.kernel[0] = 10;
  } else if (one_in(4)) {
    problem.groups = between(2, 3);
    problem.channels *= problem.groups;
    problem.outputs *= problem.groups;
    if (problem.channels > 60) problem.channels = 20 * problem.groups;
    if (problem.outputs > kMostChannels) problem.outputs = problem.groups;
  }
  problem.x_offset = one_in(8) ? 0 : between(-128, 128);
  problem.w_offset = one_in(8) ? between(-128, 128) : 0;
  if (problem.kind == ProblemKind::kDepthwise) problem.w_offset = 0;
  problem.step = problem.kind == ProblemKind::kMatrix && one_in(2) ? 0 : 1;
  problem.offset = between(-128, 127);
  problem.low = one_in(2) ? -128 : between(-128, 127);
  problem.high = one_in(2) ? 127 : between(problem.low, 127);
  const bool edges = one_in(4);
  for (int32_t c = 0; c < kMostChannels; ++c) {
    biases[c] = edges ? any() : between(-20000, 20000);
    // The lowest number is no multiplier: its square saturates in vectors.
    multipliers[c] = edges ? any() : between(1 << 30, INT32_MAX);
    if (multipliers[c] == INT32_MIN) multipliers[c] = INT32_MAX;
    shifts[c] = edges ? between(-31, one_in(2) ? 31 : 0) : between(-12, -1);
  }
  problem.bias = one_in(8) ? nullptr : biases;
  problem.multipliers = multipliers;
  problem.shifts = shifts;
  // Inputs and weights begin anywhere.
  problem.x = inputs + between(0, 15);
  problem.w = weights + between(0, 15);
  const bool extreme = one_in(8);
  fill(inputs, extreme);
  fill(weights, extreme);
}

/// Whether everything fits the memory there is.
bool fits(const Problem& problem) {
  const int32_t depth = problem.channels / problem.groups;
  const int32_t filters = problem.kernel[0] * problem.kernel[1] * depth;
  return problem.batch * problem.height * problem.width * problem.channels <
             kMostItems - 16 &&
         filters * problem.outputs < kMostItems - 16 &&
         problem.batch * (problem.height + 6) * (problem.width + 6) *
                 problem.outputs <
             kMostItems;
}

/// The output begins at any address.
int32_t run(int32_t (*variant)(const Problem&, int8_t*), const Problem& problem,
            int8_t* memory) {
  memset(memory, kUntouched, kMostItems + 2 * kGuard);
  return variant(problem, memory + kGuard + problem.offset % 4);
}

}  // namespace

int orch_application(const char* request, const char* response) {
  const platform::File from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  uint32_t head[2];
  if (from < 0 || to < 0 || !platform::read(from, head, sizeof head)) return 3;
  state = head[0];
  uint32_t counts[4] = {};
  Problem first = {};
  for (uint32_t i = 0; i < head[1]; ++i) {
    Problem problem = {};
    make(problem);
    if (!fits(problem)) continue;
    const int32_t items = run(run_scalar, problem, expected);
    const int32_t written = run(run_vectors, problem, found);
    if (items >= 0) ++counts[static_cast<int32_t>(problem.kind)];
    if (items != written || memcmp(found, expected, sizeof found) != 0) {
      if (counts[3]++ == 0) first = problem;
    }
  }
  if (!platform::write(to, counts, sizeof counts)) return 4;
  if (!platform::write(to, &first, sizeof first)) return 4;
  platform::close(from);
  platform::close(to);
  return 0;
}
