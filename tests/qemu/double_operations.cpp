// Firmware that carries out one operation on every pair of a request file: the
// words (operation, number of pairs), then the pairs, two 64-bit values each.
// The response has one 64-bit value per pair. test_soft_double.py is the other
// side.

#include <stdint.h>
#include <string.h>

#include "orch/platform.h"

#if defined(__arm__)
// Nothing but this name asks for it; doubles are passed like uint64_t.
extern "C" uint64_t __aeabi_drsub(uint64_t a, uint64_t b);
#endif

#if defined(__arm__) && !defined(__ARM_FP)
extern "C" uint32_t __aeabi_frsub(uint32_t a, uint32_t b);
#endif

namespace {

namespace platform = orch::platform;

struct Pair {
  uint64_t a;
  uint64_t b;
};

constexpr uint32_t kBlock = 1024;
Pair pairs[kBlock];
uint64_t results[kBlock];

double as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float as_float(uint64_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits);
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

uint64_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <typename F>
uint64_t compare(F a, F b) {
  uint32_t found = 0;
  found = found << 1 | (a < b ? 1U : 0U);
  found = found << 1 | (a <= b ? 1U : 0U);
  found = found << 1 | (a == b ? 1U : 0U);
  found = found << 1 | (a != b ? 1U : 0U);
  found = found << 1 | (a >= b ? 1U : 0U);
  found = found << 1 | (a > b ? 1U : 0U);
  found = found << 1 | (__builtin_isunordered(a, b) ? 1U : 0U);
  return found;
}

// The order is that of OPERATIONS in test_soft_double.py.
uint64_t apply(uint32_t operation, const Pair& pair) {
  const double a = as_double(pair.a);
  const double b = as_double(pair.b);
  const float f = as_float(pair.a);
  const float g = as_float(pair.b);
  const int32_t i32 = static_cast<int32_t>(pair.a);
  const uint32_t u32 = static_cast<uint32_t>(pair.a);
  const int64_t i64 = static_cast<int64_t>(pair.a);
  const uint64_t u64 = pair.a;
  switch (operation) {
    case 0:
      return bits_of(a + b);
    case 1:
      return bits_of(a - b);
    case 2:
#if defined(__arm__)
      return __aeabi_drsub(pair.a, pair.b);
#else
      return bits_of(b - a);
#endif
    case 3:
      return bits_of(a * b);
    case 4:
      return bits_of(a / b);
    case 5:
      return compare(a, b);
    case 6:
      return bits_of(static_cast<double>(f));
    case 7:
      return bits_of(static_cast<float>(a));
    case 8:
      return bits_of(static_cast<double>(i32));
    case 9:
      return bits_of(static_cast<double>(u32));
    case 10:
      return bits_of(static_cast<double>(i64));
    case 11:
      return bits_of(static_cast<double>(u64));
    case 12:
      return bits_of(static_cast<float>(i64));
    case 13:
      return bits_of(static_cast<float>(u64));
    case 14:
      return static_cast<uint64_t>(static_cast<int32_t>(a));
    case 15:
      return static_cast<uint32_t>(a);
    case 16:
      return static_cast<uint64_t>(static_cast<int64_t>(a));
    case 17:
      return static_cast<uint64_t>(a);
    case 18:
      return static_cast<uint64_t>(static_cast<int64_t>(f));
    case 19:
      return static_cast<uint64_t>(f);
    case 20:
      return bits_of(f + g);
    case 21:
      return bits_of(f - g);
    case 22:
#if defined(__ARM_FP) || !defined(__arm__)
      return bits_of(g - f);
#else
      return __aeabi_frsub(static_cast<uint32_t>(pair.a),
                           static_cast<uint32_t>(pair.b));
#endif
    case 23:
      return bits_of(f * g);
    case 24:
      return bits_of(f / g);
    case 25:
      return compare(f, g);
    case 26:
      return bits_of(static_cast<float>(i32));
    case 27:
      return bits_of(static_cast<float>(u32));
    case 28:
      return static_cast<uint64_t>(static_cast<int32_t>(f));
    case 29:
      return static_cast<uint32_t>(f);
    default:
      return 0;
  }
}

}  // namespace

int orch_application(const char* request, const char* response) {
  const platform::File from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  uint32_t head[2];
  if (from < 0 || to < 0 || !platform::read(from, head, sizeof head)) return 3;
  const uint32_t operation = head[0];
  for (uint32_t left = head[1]; left != 0;) {
    const uint32_t count = left < kBlock ? left : kBlock;
    if (!platform::read(from, pairs, count * sizeof pairs[0])) return 3;
    for (uint32_t i = 0; i < count; ++i) {
      results[i] = apply(operation, pairs[i]);
    }
    if (!platform::write(to, results, count * sizeof results[0])) return 4;
    left -= count;
  }
  platform::close(from);
  platform::close(to);
  return 0;
}
