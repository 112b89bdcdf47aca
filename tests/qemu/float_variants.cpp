// Firmware that makes random calls of the float kernels with vectors and in
// plain C++. The request has two words: seed and number of calls. The response
// has how many convolutions and matrix products were made, how many outputs
// were subnormal, how many NaN, how many calls differed, and the first of these
// as its numbers.
#include <stdint.h>
#include <string.h>

#include "orch/platform.h"
#include "portable/convolve.h"
#include "portable/convolve_mve.h"
#include "random_numbers.h"
#include "util/limits.h"
#include "util/matmul.h"

namespace {

using namespace orch;
using namespace orch::portable;

constexpr int32_t kMostItems = 4 * 1024;
constexpr int32_t kGuard = 32;
constexpr int32_t kMostChannels = 64;
constexpr uint32_t kUntouched = 0x5A5A5A5A;

uint32_t inputs[kMostItems];
uint32_t weights[kMostItems];
uint32_t biases[kMostChannels];
uint32_t found[kMostItems + 2 * kGuard];
uint32_t expected[kMostItems + 2 * kGuard];

const float* floats(const uint32_t* bits) {
  return reinterpret_cast<const float*>(bits);
}
float* floats(uint32_t* bits) { return reinterpret_cast<float*>(bits); }

/// The bits of a float below 2 whose exponent is up to `spread` smaller.
uint32_t number(int32_t exponent, int32_t spread) {
  const auto biased =
      static_cast<uint32_t>(exponent + 127 - between(0, spread));
  return (next() & 0x807FFFFFU) | biased << 23;
}

enum Values : int32_t {
  kOrdinary,
  kSmall,      // products are about as small as floats can be
  kSubnormal,  // one of many
  kSpecial,
  kValues,
};

void fill(uint32_t* items, int32_t count, int32_t values) {
  constexpr uint32_t kEdges[] = {
      0x7F800000, 0xFF800000, 0x7FC00000, 0x7FA00000, 0x80000000, 0x00000000,
      0x7F7FFFFF, 0xFF7FFFFF, 0x00800000, 0x80000001, 0x007FFFFF, 0x3F800000};
  for (int32_t i = 0; i < count; ++i) {
    items[i] = number(0, 6);
    if (values == kSmall) items[i] = number(-60, 8);
    if (values == kSubnormal && one_in(60)) items[i] = next() & 0x807FFFFFU;
    if (values == kSpecial && one_in(25)) items[i] = kEdges[between(0, 11)];
  }
}

/// What a call is, as numbers.
struct Problem {
  int32_t is_product;
  int32_t values[2];
  int32_t x_sizes[5];  // of a product: rows, inner, columns
  int32_t y_sizes[5];
  int32_t w_sizes[5];
  int32_t orders[3];
  int32_t stride[3];
  int32_t padding[3];
  int32_t dilation[3];
  int32_t groups;
  int32_t transposed;
  int32_t has_bias;
  int32_t limits;  // none, relu, others
  int32_t low;     // an item of kLimits
  int32_t high;
  int32_t added_row;  // to a product, with has_bias; or what a function gives
};

constexpr float kLimits[] = {0.0F, 1e-42F, 0.25F, 6.0F, __builtin_inff()};

/// What the kernels after a call make of its output.
float limited(const Problem& p, float value) {
  if (p.limits == 0) return value;
  if (p.limits == 1) return is_negative(value) ? 0.0F : value;
  return at_most(at_least(value, -kLimits[p.low]), kLimits[p.high]);
}

/// The same for vectors.
Limits limits_of(const Problem& p) {
  if (p.limits == 1) return kReluLimits;
  const float low = -kLimits[p.low];
  Limits limits;
  memcpy(&limits.low, &low, sizeof low);
  memcpy(&limits.high, &kLimits[p.high], sizeof low);
  return limits;
}

void make_limits(Problem& p) {
  p.limits = between(0, 2);
  p.low = between(0, 4);
  p.high = between(0, 4);
}

constexpr uint8_t kOrders[4][5] = {
    {0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}, {0, 4, 1, 2, 3}, {1, 0, 3, 4, 2}};

Tensor tensor(void* memory, const int32_t* sizes, int32_t order) {
  return {Tag::Tensor, ScalarType::Float, 5, 0, memory, sizes, kOrders[order]};
}

int32_t numel(const int32_t* sizes) {
  return sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4];
}

/// Any convolution that fits the memory and has an output.
bool make_convolution(Problem& p) {
  p.transposed = one_in(4) ? 1 : 0;
  p.groups = one_in(4) ? between(2, 3) : 1;
  int32_t in = between(1, one_in(4) ? 20 : 5);
  int32_t out = between(1, one_in(4) ? 20 : 5);
  if (one_in(4)) {  // depthwise
    p.groups = between(1, 12);
    in = 1;
    out = 1;
  }
  p.x_sizes[0] = between(1, 2);
  p.x_sizes[1] = in * p.groups;
  p.y_sizes[0] = p.x_sizes[0];
  p.y_sizes[1] = out * p.groups;
  p.w_sizes[0] = p.transposed != 0 ? p.x_sizes[1] : p.y_sizes[1];
  p.w_sizes[1] = p.transposed != 0 ? out : in;
  const bool is_volume = one_in(3);
  for (int i = 0; i < 3; ++i) {
    p.w_sizes[2 + i] = one_in(3) ? 1 : between(1, 5);
    p.x_sizes[2 + i] = between(1, one_in(4) ? 24 : 9);
    if (i == 0) {
      p.w_sizes[2] = is_volume ? between(1, 3) : 1;
      p.x_sizes[2] = is_volume ? between(1, 5) : 1;
    }
    p.stride[i] = one_in(2) ? 1 : between(1, 3);
    p.padding[i] = one_in(2) ? 0 : between(0, 4);
    p.dilation[i] = one_in(4) ? between(2, 3) : 1;
    if (i == 0 && !is_volume) p.stride[0] = 1;
    if (i == 0 && !is_volume) p.padding[0] = 0;
    const int32_t window = p.dilation[i] * (p.w_sizes[2 + i] - 1) + 1;
    p.y_sizes[2 + i] =
        p.transposed != 0
            ? (p.x_sizes[2 + i] - 1) * p.stride[i] - 2 * p.padding[i] + window
            : p.x_sizes[2 + i] + 2 * p.padding[i] - window;
    if (p.transposed == 0) {
      if (p.y_sizes[2 + i] < 0) return false;
      p.y_sizes[2 + i] = p.y_sizes[2 + i] / p.stride[i] + 1;
    }
    if (p.y_sizes[2 + i] < 1) return false;
  }
  for (int32_t& order : p.orders) order = one_in(2) ? 0 : between(0, 3);
  p.has_bias = one_in(4) ? 0 : 1;
  if (!is_volume) make_limits(p);
  return numel(p.x_sizes) < kMostItems && numel(p.y_sizes) < kMostItems &&
         numel(p.w_sizes) < kMostItems && p.y_sizes[1] <= kMostChannels;
}

void convolve(const Problem& p, float* out, bool vectors) {
  Convolution conv;
  for (int i = 0; i < 3; ++i) {
    conv.axes[i] = {p.x_sizes[2 + i], p.y_sizes[2 + i], p.w_sizes[2 + i],
                    p.stride[i],      p.padding[i],     p.dilation[i]};
  }
  conv.groups = p.groups;
  conv.transposed = p.transposed != 0;
  const Tensor input = tensor(inputs, p.x_sizes, p.orders[0]);
  const Tensor weight = tensor(weights, p.w_sizes, p.orders[1]);
  const Tensor output = tensor(out, p.y_sizes, p.orders[2]);
  const float* bias = p.has_bias != 0 ? floats(biases) : nullptr;
  const TensorFilters filters(conv, input, weight, output);
  const AnyTaps taps = {conv.transposed};
  if (vectors) {
    const Limits limits = limits_of(p);
    convolve_vectors(filters, filters.volumes, taps, floats(inputs),
                     floats(weights), bias, out,
                     p.limits == 0 ? nullptr : &limits);
  } else {
    convolve_plain(filters, filters.volumes, taps, AnyDots{}, floats(inputs),
                   floats(weights), bias, out);
    const int32_t count = numel(p.y_sizes);
    for (int32_t i = 0; i < count; ++i) out[i] = limited(p, out[i]);
  }
}

/// Any product whose matrices fit the memory; each lies by rows or by columns.
bool make_product(Problem& p) {
  p.is_product = 1;
  for (int i = 0; i < 3; ++i) {
    p.x_sizes[i] = between(i == 1 ? 0 : 1, one_in(3) ? 60 : 9);
    p.orders[i] = between(0, 1);
  }
  p.has_bias = between(0, 1);
  p.added_row = between(0, 1);
  if (p.added_row != 0) make_limits(p);
  return true;
}

template <typename T>
Matrix<T> matrix(T* items, int32_t rows, int32_t columns, int32_t order) {
  if (order == 0) return {items, columns, 1};
  return {items, 1, rows};
}

void multiply(const Problem& p, float* out, bool vectors) {
  const int32_t rows = p.x_sizes[0];
  const int32_t inner = p.x_sizes[1];
  const int32_t columns = p.x_sizes[2];
  const auto a = matrix(floats(static_cast<const uint32_t*>(inputs)), rows,
                        inner, p.orders[0]);
  const auto b = matrix(floats(static_cast<const uint32_t*>(weights)), inner,
                        columns, p.orders[1]);
  const auto y = matrix(out, rows, columns, p.orders[2]);
  const float* const row = p.has_bias != 0 ? floats(biases) : nullptr;
  const auto finish = [&](float sum, int32_t i, int32_t j) {
    if (p.added_row != 0)
      return limited(p, row != nullptr ? row[j] + sum : sum);
    if (p.has_bias == 0) return sum;
    return 0.5F * sum + floats(biases)[(i + j) % kMostChannels];
  };
  if (vectors && p.added_row != 0) {
    const Limits limits = limits_of(p);
    multiply_vectors(a, b, y, rows, inner, columns,
                     {row, p.limits == 0 ? nullptr : &limits});
  } else if (vectors) {
    matmul_vectors(a, b, y, rows, inner, columns, finish);
  } else {
    matmul_plain(a, b, y, rows, inner, columns, finish);
  }
}

void run(const Problem& p, uint32_t* memory, bool vectors) {
  for (int32_t i = 0; i < kMostItems + 2 * kGuard; ++i) memory[i] = kUntouched;
  float* const out = floats(memory + kGuard);
  p.is_product != 0 ? multiply(p, out, vectors) : convolve(p, out, vectors);
}

bool is_nan(uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }

bool is_subnormal(uint32_t bits) {
  return (bits & 0x7F800000) == 0 && (bits & 0x007FFFFF) != 0;
}

/// Runs a problem in both ways. Flags that were set before must be so after.
bool differs(const Problem& p, uint32_t* counts) {
  run(p, expected, false);
  uint32_t before;
  asm volatile("vmrs %0, fpscr" : "=r"(before));
  before = (before & ~0x9FU) | (next() & 0x9FU);
  asm volatile("vmsr fpscr, %0" : : "r"(before));
  run(p, found, true);
  uint32_t after;
  asm volatile("vmrs %0, fpscr" : "=r"(after));
  bool different = (after & before) != before;
  for (int32_t i = 0; i < kMostItems + 2 * kGuard; ++i) {
    counts[2] += is_subnormal(expected[i]) ? 1 : 0;
    counts[3] += is_nan(expected[i]) ? 1 : 0;
    different |=
        found[i] != expected[i] && !(is_nan(found[i]) && is_nan(expected[i]));
  }
  return different;
}

}  // namespace

int orch_application(const char* request, const char* response) {
  const platform::File from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  uint32_t head[2];
  if (from < 0 || to < 0 || !platform::read(from, head, sizeof head)) return 3;
  state = head[0];
  uint32_t counts[5] = {};
  Problem first = {};
  for (uint32_t i = 0; i < head[1]; ++i) {
    Problem problem = {};
    if (!(one_in(3) ? make_product(problem) : make_convolution(problem))) {
      continue;
    }
    for (int32_t& values : problem.values) {
      values = one_in(2) ? kOrdinary : between(0, kValues - 1);
    }
    if (problem.values[0] == kSmall) problem.values[1] = kSmall;
    fill(inputs, kMostItems, problem.values[0]);
    fill(weights, kMostItems, problem.values[1]);
    fill(biases, kMostChannels, problem.values[0]);
    ++counts[problem.is_product];
    if (differs(problem, counts) && counts[4]++ == 0) first = problem;
  }
  if (!platform::write(to, counts, sizeof counts)) return 4;
  if (!platform::write(to, &first, sizeof first)) return 4;
  platform::close(from);
  platform::close(to);
  return 0;
}
