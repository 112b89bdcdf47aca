#include "util/scalar.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>

namespace orch::test {
namespace {

TEST_CASE("integers become the nearest float, ties to even") {
  int wrong = 0;
  const auto check = [&](int64_t value) {
    wrong += float_from_int(value) != static_cast<float>(value);
  };
  // Around every power of two and halfway between two floats.
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t power = int64_t{1} << bit;
    const int64_t step = bit > 23 ? power >> 23 : 1;
    for (const int64_t at : {power, power + step / 2, power + step * 3 / 2}) {
      for (int64_t offset = -2; offset <= 2; ++offset) {
        check(at + offset);
        check(-at + offset);
      }
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    check(static_cast<int64_t>(random()) >> (random() % 64));
  }
  check(std::numeric_limits<int64_t>::min());
  check(std::numeric_limits<int64_t>::max());
  CHECK(wrong == 0);
}

Scalar scalar(int64_t number) {
  Value value;
  value.set_int(number);
  return value.scalar();
}
Scalar scalar(double number) {
  Value value;
  value.set_double(number);
  return value.scalar();
}

TEST_CASE("scalars in the type a kernel computes in") {
  CHECK(scalar_as<float>(scalar(0.1)) == 0.1F);
  CHECK(scalar_as<Half>(scalar(0.1)) == 0.1F);
  CHECK(scalar_as<double>(scalar(int64_t{1} << 53)) == 0x1p53);
  CHECK(scalar_as<float>(scalar(int64_t{-3})) == -3);
  CHECK(scalar_as<int8_t>(scalar(-2.5)) == static_cast<uint32_t>(-2));
  CHECK(scalar_as<int64_t>(scalar(int64_t{-1})) == UINT64_MAX);
  CHECK(scalar_as<bool>(scalar(int64_t{1} << 32)) == 1);
  CHECK(scalar_as<bool>(scalar(0.5)) == 1);
  CHECK(scalar_as<bool>(scalar(int64_t{0})) == 0);
}

}  // namespace
}  // namespace orch::test
