#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/call.h"
#include "support/kernels.h"

namespace orch::test {
namespace {

using C = Complex<float>;
using D = Complex<double>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("distances from 0 neither overflow nor vanish") {
  const auto x = TestTensor::of<C>({6}, {{3e38F, 0},
                                         {3e30F, -4e30F},
                                         {3e-30F, 4e-30F},
                                         {0x1p-149F, 0},
                                         {-kInf, kNan},
                                         {kNan, 1}});
  const TestTensor out(ScalarType::Float, {6});
  CHECK(Call().add(x).add(out).run(portable::abs_out) == Error::Ok);
  const std::vector<float> y = out.items<float>();
  CHECK(y[0] == 3e38F);
  CHECK(y[1] == doctest::Approx(5e30F));
  CHECK(y[2] == doctest::Approx(5e-30F));
  CHECK(y[3] == 0x1p-149F);
  CHECK(y[4] == kInf);
  CHECK(std::isnan(y[5]));
}

TEST_CASE("distances have the dtype of the parts") {
  const TestTensor x(ScalarType::ComplexDouble, {2});
  CHECK(Call().add(x).add({ScalarType::Float, {2}}).run(portable::abs_out) ==
        Error::InvalidArgument);
  CHECK(Call()
            .add(x)
            .add({ScalarType::ComplexDouble, {2}})
            .run(portable::abs_out) == Error::InvalidArgument);
}

TEST_CASE("quotients of large and small numbers") {
  const auto a = TestTensor::of<D>({3}, {{1e300, 1e300}, {2, 0}, {1, 1}});
  const auto b = TestTensor::of<D>({3}, {{1e300, -1e300}, {0, 1e-300}, {0, 0}});
  const TestTensor out(ScalarType::ComplexDouble, {3});
  CHECK(Call().add(a).add(b).add(out).run(portable::div_out) == Error::Ok);
  const std::vector<D> y = out.items<D>();
  CHECK(y[0].real == 0);
  CHECK(y[0].imag == 1);
  CHECK(y[1].imag == doctest::Approx(-2e300));
  CHECK(std::isinf(y[2].real));
}

TEST_CASE("exponentials overflow only where they are too large") {
  const auto z = TestTensor::of<C>(
      {5},
      {{89, 0.785398163F}, {89, 0.1F}, {-kInf, kInf}, {kInf, 0}, {kInf, kNan}});
  const TestTensor out(ScalarType::ComplexFloat, {5});
  CHECK(Call().add(z).add(out).run(portable::exp_out) == Error::Ok);
  const std::vector<C> y = out.items<C>();
  CHECK(y[0].real == doctest::Approx(3.17463567e38F));
  CHECK(y[0].imag == doctest::Approx(3.17463567e38F));
  CHECK(y[1].real == kInf);
  CHECK(y[1].imag == doctest::Approx(4.48213387e37F));
  CHECK((y[2].real == 0 && y[2].imag == 0));
  CHECK((y[3].real == kInf && y[3].imag == 0));
  CHECK((y[4].real == kInf && std::isnan(y[4].imag)));
}

TEST_CASE("complex tensors do not mix with others") {
  const TestTensor z(ScalarType::ComplexFloat, {2});
  const TestTensor x(ScalarType::Float, {2});
  const TestTensor wide(ScalarType::ComplexDouble, {2});
  for (const auto kernel : {portable::mul_out, portable::div_out}) {
    CHECK(Call().add(z).add(x).add(z).run(kernel) != Error::Ok);
    CHECK(Call().add(x).add(z).add(z).run(kernel) != Error::Ok);
    CHECK(Call().add(x).add(x).add(z).run(kernel) != Error::Ok);
    CHECK(Call().add(z).add(z).add(x).run(kernel) != Error::Ok);
    CHECK(Call().add(z).add(z).add(wide).run(kernel) != Error::Ok);
  }
}

TEST_CASE("exponentials have the dtype of their exponents") {
  const TestTensor z(ScalarType::ComplexFloat, {2});
  const TestTensor x(ScalarType::Float, {2});
  const TestTensor wide(ScalarType::ComplexDouble, {2});
  CHECK(Call().add(z).add(x).run(portable::exp_out) != Error::Ok);
  CHECK(Call().add(x).add(z).run(portable::exp_out) != Error::Ok);
  CHECK(Call().add(z).add(wide).run(portable::exp_out) != Error::Ok);
}

TEST_CASE("parts are one more dimension, in any order") {
  const auto z = TestTensor::of<C>({2, 1}, {{1, 2}, {3, 4}});
  const TestTensor parts(ScalarType::Float, {2, 1, 2}, {2, 1, 0});
  CHECK(Call().add(z).add(parts).run(portable::view_as_real_copy_out) ==
        Error::Ok);
  CHECK(parts.items<float>() == std::vector<float>{1, 3, 2, 4});
  const TestTensor back(ScalarType::ComplexFloat, {2, 1});
  CHECK(Call().add(parts).add(back).run(portable::view_as_complex_copy_out) ==
        Error::Ok);
  CHECK(back.items<C>()[1].real == 3);
  CHECK(back.items<C>()[1].imag == 4);
  CHECK(Call()
            .add(parts)
            .add({ScalarType::ComplexDouble, {2, 1}})
            .run(portable::view_as_complex_copy_out) == Error::InvalidArgument);
  CHECK(Call()
            .add({ScalarType::Float, {2}})
            .add(parts)
            .run(portable::view_as_real_copy_out) == Error::InvalidArgument);
}

TEST_CASE("the spectrum of an impulse is flat, whatever the length") {
  for (const int32_t size : {1, 2, 3, 4, 12, 13, 17, 34, 64, 100}) {
    std::vector<float> items(static_cast<size_t>(size), 0.0F);
    items[0] = 1;
    const auto x = TestTensor::of<float>({size}, items);
    const TestTensor out(ScalarType::ComplexFloat, {size / 2 + 1});
    CHECK(Call().add(x).ints({0}).integer(0).boolean(true).add(out).run(
              portable::_fft_r2c_out) == Error::Ok);
    for (const C y : out.items<C>()) {
      CHECK(y.real == 1);
      CHECK(y.imag == 0);
    }
  }
}

TEST_CASE("transforms refuse what does not fit") {
  const TestTensor x(ScalarType::Float, {2, 6});
  const TestTensor half(ScalarType::ComplexFloat, {2, 4});
  const TestTensor whole(ScalarType::ComplexFloat, {2, 6});
  const auto run = [&](const TestTensor& self, std::vector<int64_t> dims,
                       int64_t norm, bool onesided, const TestTensor& out) {
    return Call()
        .add(self)
        .ints(dims)
        .integer(norm)
        .boolean(onesided)
        .add(out)
        .run(portable::_fft_r2c_out);
  };
  CHECK(run(x, {1}, 0, true, half) == Error::Ok);
  CHECK(run(x, {1}, 2, false, whole) == Error::Ok);
  CHECK(run(x, {1}, 0, false, half) == Error::InvalidArgument);
  CHECK(run(x, {0}, 0, true, half) == Error::InvalidArgument);
  CHECK(run(x, {}, 0, true, half) == Error::InvalidArgument);
  CHECK(run(x, {2}, 0, true, half) == Error::InvalidArgument);
  CHECK(run(x, {1, -1}, 0, true, half) == Error::InvalidArgument);
  CHECK(run(x, {1}, 3, true, half) == Error::InvalidArgument);
  CHECK(run(x, {1}, 0, true, {ScalarType::ComplexDouble, {2, 4}}) ==
        Error::InvalidArgument);
  CHECK(run({ScalarType::Float, {2, 0}}, {1}, 0, true,
            {ScalarType::ComplexFloat, {2, 1}}) == Error::InvalidArgument);
  const TestTensor empty(ScalarType::ComplexFloat, {0, 4});
  CHECK(run({ScalarType::Float, {0, 6}}, {1}, 0, true, empty) == Error::Ok);
  const auto back = [&](int64_t size, const TestTensor& out) {
    return Call().add(half).ints({1}).integer(2).integer(size).add(out).run(
        portable::_fft_c2r_out);
  };
  CHECK(back(6, x) == Error::Ok);
  CHECK(back(7, {ScalarType::Float, {2, 7}}) == Error::Ok);
  CHECK(back(8, {ScalarType::Float, {2, 8}}) == Error::InvalidArgument);
  CHECK(back(0, {ScalarType::Float, {2, 0}}) == Error::InvalidArgument);
  CHECK(back(6, {ScalarType::Double, {2, 6}}) == Error::InvalidArgument);
}

}  // namespace
}  // namespace orch::test
