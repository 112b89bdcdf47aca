// Firmware that hashes results of the runtime's math functions. The request has
// two words: seed and number of arguments of each function. The response has a
// hash per function, float and double in turn. On the host, a program that
// takes both words as arguments and prints the hashes.
#include <stdint.h>
#include <string.h>

#include "orch/math.h"
#include "random_numbers.h"

namespace {

using namespace orch;

template <typename F>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kFraction = 23;
  static constexpr uint32_t kOne = 0x3F800000;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kFraction = 52;
  static constexpr uint64_t kOne = 0x3FF0000000000000;
};

/// Any number, or one whose size is between 2^-12 and 2^12.
template <typename F>
F draw() {
  using Bits = typename Format<F>::Bits;
  Bits bits = next();
  if (sizeof(F) == 8) bits = static_cast<Bits>(uint64_t{next()} << 32 | bits);
  if (!one_in(3)) {
    const Bits fraction = (Bits{1} << Format<F>::kFraction) - 1;
    const Bits sign = Bits{1} << (8 * sizeof(F) - 1);
    bits = (bits & (fraction | sign)) | Format<F>::kOne;
    bits += static_cast<Bits>(between(0, 24)) << Format<F>::kFraction;
    bits -= Bits{12} << Format<F>::kFraction;
  }
  F value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename F>
struct Functions {
  using One = F (*)(F);
  static constexpr One kOne[] = {
      math::exp,   math::expm1, math::log,   math::log1p, math::log2,
      math::log10, math::sqrt,  math::erf,   math::sin,   math::cos,
      math::tan,   math::asin,  math::acos,  math::atan,  math::sinh,
      math::cosh,  math::tanh,  math::asinh, math::acosh, math::atanh};
  using Two = F (*)(F, F);
  static constexpr Two kTwo[] = {math::pow, math::atan2};
};

constexpr uint32_t kResults = 2 * 22;

template <typename F>
void mix(uint32_t& hash, F value) {
  typename Format<F>::Bits bits = 0;
  // Sign and payload of NaN depend on the processor.
  if (value == value) memcpy(&bits, &value, sizeof bits);
  for (size_t i = 0; i < sizeof bits; ++i, bits >>= 8) {
    hash = (hash ^ static_cast<uint8_t>(bits)) * 0x01000193U;
  }
}

template <typename F>
uint32_t* hash_all(uint32_t seed, uint32_t count, uint32_t* to) {
  for (const auto fn : Functions<F>::kOne) {
    state = seed;
    uint32_t hash = 0x811C9DC5U;
    for (uint32_t i = 0; i < count; ++i) mix(hash, fn(draw<F>()));
    *to++ = hash;
  }
  for (const auto fn : Functions<F>::kTwo) {
    state = seed;
    uint32_t hash = 0x811C9DC5U;
    for (uint32_t i = 0; i < count; ++i) {
      const F x = draw<F>();
      mix(hash, fn(x, draw<F>()));
    }
    *to++ = hash;
  }
  return to;
}

}  // namespace

#ifdef ORCH_HOST
#include <stdio.h>
#include <stdlib.h>

int main(int, char** arguments) {
  const uint32_t seed = static_cast<uint32_t>(atoi(arguments[1]));
  const uint32_t count = static_cast<uint32_t>(atoi(arguments[2]));
  uint32_t hashes[kResults];
  hash_all<double>(seed, count, hash_all<float>(seed, count, hashes));
  for (const uint32_t hash : hashes) printf("%u\n", hash);
  return 0;
}
#else
#include "orch/platform.h"

int orch_application(const char* request, const char* response) {
  const platform::File from = platform::open_for_reading(request);
  const platform::File to = platform::open_for_writing(response);
  uint32_t head[2];
  if (from < 0 || to < 0 || !platform::read(from, head, sizeof head)) return 3;
  uint32_t hashes[kResults];
  hash_all<double>(head[0], head[1], hash_all<float>(head[0], head[1], hashes));
  if (!platform::write(to, hashes, sizeof hashes)) return 4;
  platform::close(from);
  platform::close(to);
  return 0;
}
#endif
