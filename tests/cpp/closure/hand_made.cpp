#include "closure/hand_made.h"

namespace orch::test {
namespace {

/// a + b of one item each.
template <typename A, typename B, typename Out>
ReferenceCall add(A a, B b, Out sum) {
  ReferenceCall call("aten::add.out");
  call.input(TestTensor::of<A>({1}, {a}));
  call.input(TestTensor::of<B>({1}, {b}));
  call.integer(1);
  call.output(TestTensor::of<Out>({1}, {sum}));
  return call;
}

/// Truth of one of two items, all in one dtype.
template <typename T>
ReferenceCall logical_xor() {
  ReferenceCall call("aten::logical_xor.out");
  const T zero{};
  const T one(1);
  call.input(TestTensor::of<T>({3}, {one, zero, one}));
  call.input(TestTensor::of<T>({3}, {zero, zero, one}));
  call.output(TestTensor::of<T>({3}, {one, zero, zero}));
  return call;
}

/// Numbers kept within 0 and 1.
template <typename T>
ReferenceCall hardtanh() {
  ReferenceCall call("aten::hardtanh.out");
  call.input(TestTensor::of<T>({3}, {0, 1, 5}));
  call.number(0.5).number(1.5);
  call.output(TestTensor::of<T>({3}, {0, 1, 1}));
  return call;
}

/// Truth values, none of which is false.
ReferenceCall clamp() {
  ReferenceCall call("aten::clamp.out");
  call.input(TestTensor::of<bool>({2}, {false, true}));
  call.boolean(true).none();
  call.output(TestTensor::of<bool>({2}, {true, true}));
  return call;
}

/// Shifts of truth values, which PyTorch does not have.
ReferenceCall shift(const char* name, bool by_number, bool result) {
  ReferenceCall call(name);
  call.input(TestTensor::of<bool>({1}, {true}));
  if (by_number) {
    call.boolean(true);
  } else {
    call.input(TestTensor::of<bool>({1}, {true}));
  }
  call.output(TestTensor::of<bool>({1}, {result}));
  return call;
}

/// No random numbers, as those of others follow from the calls before.
ReferenceCall no_numbers(const char* name, ScalarType dtype) {
  ReferenceCall call(name);
  call.ints({0}).output(TestTensor(dtype, {0}));
  return call;
}

/// A tensor of one item, which is replaced where it is.
template <typename T>
ReferenceCall index_put() {
  ReferenceCall call("aten::index_put_");
  call.output(TestTensor::of<T>({1}, {T(1)}));
  std::deque<std::optional<TestTensor>> indices;
  indices.emplace_back(TestTensor::of<int64_t>({1}, {0}));
  call.inputs(std::move(indices));
  call.input(TestTensor::of<T>({1}, {T(1)})).boolean(false);
  return call;
}

/// Sums or products of truth values as a truth value, which PyTorch gives as
/// Long.
ReferenceCall cumulative(const char* name) {
  ReferenceCall call(name);
  call.input(TestTensor::of<bool>({2}, {true, true})).integer(0).none();
  call.output(TestTensor::of<bool>({2}, {true, true}));
  return call;
}

/// cosh or sinh of 0.
template <typename T>
ReferenceCall hyperbolic(const char* name, float result) {
  ReferenceCall call(name);
  call.input(TestTensor::of<T>({1}, {0}));
  call.output(TestTensor::of<float>({1}, {result}));
  return call;
}

/// The longest side of a triangle.
template <typename T>
ReferenceCall hypot() {
  ReferenceCall call("aten::hypot.out");
  call.input(TestTensor::of<T>({1}, {3}));
  call.input(TestTensor::of<T>({1}, {4}));
  call.output(TestTensor::of<float>({1}, {5}));
  return call;
}

/// The place of 3 among 1, 3 and 5.
ReferenceCall searched(const char* name, bool by_number, bool buckets) {
  ReferenceCall call(name);
  if (!buckets) call.input(TestTensor::of<int64_t>({3}, {1, 3, 5}));
  if (by_number) {
    call.integer(3);
  } else {
    call.input(TestTensor::of<int64_t>({1}, {3}));
  }
  if (buckets) call.input(TestTensor::of<int64_t>({3}, {1, 3, 5}));
  call.boolean(false).boolean(false);
  if (!buckets) call.none().none();
  call.output(by_number ? TestTensor::of<int64_t>({}, {1})
                        : TestTensor::of<int64_t>({1}, {1}));
  return call;
}

/// The place of true behind false, which PyTorch does not compare.
ReferenceCall searched_truth(bool buckets) {
  ReferenceCall call(buckets ? "aten::bucketize.Tensor_out"
                             : "aten::searchsorted.Tensor_out");
  if (!buckets) call.input(TestTensor::of<bool>({2}, {false, true}));
  call.input(TestTensor::of<bool>({1}, {true}));
  if (buckets) call.input(TestTensor::of<bool>({2}, {false, true}));
  call.boolean(false).boolean(false);
  if (!buckets) call.none().none();
  call.output(TestTensor::of<int64_t>({1}, {1}));
  return call;
}

/// A product of two matrices of one item.
template <typename T>
ReferenceCall linear() {
  ReferenceCall call("aten::linear.out");
  call.input(TestTensor::of<T>({1, 1}, {2}));
  call.input(TestTensor::of<T>({1, 1}, {3})).none();
  call.output(TestTensor::of<T>({1, 1}, {6}));
  return call;
}

/// An image of one item, scaled to its own size.
template <typename T>
ReferenceCall bilinear() {
  ReferenceCall call("aten::upsample_bilinear2d.vec_out");
  call.input(TestTensor::of<T>({1, 1, 1, 1}, {7})).ints({1, 1});
  call.boolean(false).none();
  call.output(TestTensor::of<T>({1, 1, 1, 1}, {7}));
  return call;
}

/// The only item of an image.
template <typename T>
ReferenceCall grid() {
  ReferenceCall call("aten::grid_sampler_2d.out");
  call.input(TestTensor::of<T>({1, 1, 1, 1}, {7}));
  call.input(TestTensor::of<T>({1, 1, 1, 2}, {0, 0}));
  call.integer(0).integer(0).boolean(true);
  call.output(TestTensor::of<T>({1, 1, 1, 1}, {7}));
  return call;
}

/// The mean of one item.
ReferenceCall adaptive() {
  ReferenceCall call("aten::_adaptive_avg_pool2d.out");
  call.input(TestTensor::of<int64_t>({1, 1, 1, 1}, {7})).ints({1, 1});
  call.output(TestTensor::of<int64_t>({1, 1, 1, 1}, {7}));
  return call;
}

/// A tensor of one item, which is replaced.
ReferenceCall slice_scatter() {
  ReferenceCall call("aten::slice_scatter.out");
  call.input(TestTensor::of<int64_t>({1}, {7}));
  call.input(TestTensor::of<int64_t>({1}, {8}));
  call.integer(0).none().none().integer(1);
  call.output(TestTensor::of<int64_t>({1}, {8}));
  return call;
}

/// The number in a tensor of one item.
template <typename T, typename Number>
ReferenceCall item(T value, Number number) {
  ReferenceCall call("aten::_local_scalar_dense");
  call.input(TestTensor::of<T>({1}, {value}));
  call.gives(number);
  return call;
}

/// The mean of the library that tests this test.
template <typename T>
ReferenceCall mean(std::vector<T> items, T value) {
  ReferenceCall call("narrow::mean.out");
  call.input(TestTensor::of<T>({static_cast<int32_t>(items.size())}, items));
  call.output(TestTensor::of<T>({1}, {value}));
  return call;
}

/// Numbers of a quantized dtype from floats, or back.
template <typename Q>
ReferenceCall quantizer(bool back) {
  ReferenceCall call(back ? "cortex_m::dequantize_per_tensor.out"
                          : "cortex_m::quantize_per_tensor.out");
  TestTensor numbers = TestTensor::of<Q>({2}, {-3, 100});
  TestTensor floats = TestTensor::of<float>({2}, {-2.5F, 49});
  const auto type = static_cast<int64_t>(DtypeOf<Q>::value);
  call.input(std::move(back ? numbers : floats));
  call.number(0.5).integer(2).integer(INT8_MIN).integer(INT8_MAX);
  call.integer(type).output(std::move(back ? floats : numbers));
  return call;
}

/// A quotient of the int8 operators.
template <typename Q>
ReferenceCall quotient() {
  ReferenceCall call("cortex_m::quantized_div.out");
  call.input(TestTensor::of<Q>({3}, {7, 20, 3})).integer(2);
  call.input(TestTensor::of<Q>({3}, {3, 1, 1})).integer(1);
  call.integer(4).number(1);
  call.output(TestTensor::of<Q>({3}, {7, 4, 4}));
  return call;
}

/// The int8 average of a pixel of four, halfway between two steps. `T` of the
/// scratch tensor decides where that is rounded to.
template <typename T>
ReferenceCall halfway(bool nhwc, int8_t rounded) {
  ReferenceCall call(nhwc ? "cortex_m::quantized_avg_pool2d_nhwc.out"
                          : "cortex_m::quantized_avg_pool2d.out");
  std::vector<int32_t> sizes = {1, 1, 2, 2};
  if (nhwc) sizes = {1, 2, 2, 1};
  call.input(TestTensor::of<int8_t>(sizes, {0, 1, 0, 1}));
  call.ints({2, 2}).ints({2, 2}).ints({0, 0}).boolean(false);
  call.integer(0).integer(1 << 30).integer(1);
  call.input(TestTensor::of<T>({0}, {}));
  call.output(TestTensor::of<int8_t>({1, 1, 1, 1}, {rounded}));
  return call;
}

/// The average of a volume of one item.
template <typename T>
ReferenceCall average(bool adaptive) {
  ReferenceCall call(adaptive ? "aten::_adaptive_avg_pool3d.out"
                              : "aten::avg_pool3d.out");
  call.input(TestTensor::of<T>({1, 1, 1, 1}, {T(7)})).ints({1, 1, 1});
  if (!adaptive) {
    call.ints({}).ints({0}).boolean(false).boolean(true).none();
  }
  call.output(TestTensor::of<T>({1, 1, 1, 1}, {T(7)}));
  return call;
}

/// Real numbers are their own conjugates.
template <typename... T>
void real_conjugates(std::deque<ReferenceCall>& calls) {
  const auto add = [&calls](TestTensor in, TestTensor out) {
    ReferenceCall call("aten::_conj_copy.out");
    call.input(std::move(in)).output(std::move(out));
    calls.push_back(std::move(call));
  };
  (add(TestTensor::of<T>({1}, {T(1)}), TestTensor::of<T>({1}, {T(1)})), ...);
}

/// Operators that PyTorch does not compute for ComplexHalf.
template <typename T>
void complex_numbers(std::deque<ReferenceCall>& calls) {
  using C = Complex<T>;
  const C value(T(3.0F), T(-4.0F));
  const C square(T(-7.0F), T(-24.0F));
  const auto one = [](std::vector<int32_t> sizes, C item) {
    return TestTensor::of<C>(std::move(sizes), {item});
  };
  ReferenceCall abs("aten::abs.out");
  abs.input(one({1}, value)).output(TestTensor::of<T>({1}, {T(5.0F)}));
  calls.push_back(std::move(abs));
  ReferenceCall mm("aten::mm.out");
  mm.input(one({1, 1}, value)).input(one({1, 1}, value));
  mm.output(one({1, 1}, square));
  calls.push_back(std::move(mm));
  ReferenceCall bmm("aten::bmm.out");
  bmm.input(one({1, 1, 1}, value)).input(one({1, 1, 1}, value));
  bmm.output(one({1, 1, 1}, square));
  calls.push_back(std::move(bmm));
  ReferenceCall div("aten::div.out");
  div.input(one({1}, value)).input(one({1}, value));
  div.output(one({1}, C(T(1.0F), T(0.0F))));
  calls.push_back(std::move(div));
  ReferenceCall sum("aten::sum.IntList_out");
  sum.input(one({1}, value)).ints({0}).boolean(false).none();
  sum.output(one({}, value));
  calls.push_back(std::move(sum));
}

/// Complex tensors of one item, which are moved as they are.
template <typename T>
void complex_moves(std::deque<ReferenceCall>& calls) {
  using C = Complex<T>;
  const C value(T(3.0F), T(-4.0F));
  const auto one = [&] { return TestTensor::of<C>({1}, {value}); };
  ReferenceCall copy("aten::copy_");
  copy.output(one()).input(one()).boolean(false);
  calls.push_back(std::move(copy));
  ReferenceCall select("aten::select_scatter.out");
  select.input(one()).input(TestTensor::of<C>({}, {value}));
  select.integer(0).integer(0).output(one());
  calls.push_back(std::move(select));
  ReferenceCall slice("aten::slice_scatter.out");
  slice.input(one()).input(one()).integer(0).none().none().integer(1);
  slice.output(one());
  calls.push_back(std::move(slice));
  for (const char* name : {"dim_order_ops::_clone_dim_order.out",
                           "dim_order_ops::_to_dim_order_copy.out"}) {
    ReferenceCall call(name);
    call.input(one()).boolean(false).none().output(one());
    calls.push_back(std::move(call));
  }
}

}  // namespace

std::deque<ReferenceCall> hand_made_calls() {
  std::deque<ReferenceCall> calls;
  // Computed in a dtype that no argument has: Short, and Float.
  calls.push_back(add<uint8_t, int8_t, float>(200, -100, 100));
  calls.push_back(add<Half, BFloat16, double>(Half(1.5F), BFloat16(3), 4.5));
  calls.push_back(item<uint8_t>(200, int64_t{200}));
  calls.push_back(item<int8_t>(-100, int64_t{-100}));
  calls.push_back(item<int16_t>(-1000, int64_t{-1000}));
  calls.push_back(item<int32_t>(-70000, int64_t{-70000}));
  calls.push_back(item<int64_t>(INT64_MIN, INT64_MIN));
  calls.push_back(item(Half(1.5F), 1.5));
  calls.push_back(item(BFloat16(-3), -3.0));
  calls.push_back(item(0.1F, static_cast<double>(0.1F)));
  calls.push_back(item(0.1, 0.1));
  calls.push_back(item(true, true));
  calls.push_back(logical_xor<uint8_t>());
  calls.push_back(logical_xor<int8_t>());
  calls.push_back(logical_xor<int16_t>());
  calls.push_back(logical_xor<int32_t>());
  calls.push_back(logical_xor<int64_t>());
  calls.push_back(logical_xor<Half>());
  calls.push_back(logical_xor<BFloat16>());
  calls.push_back(logical_xor<float>());
  calls.push_back(logical_xor<double>());
  calls.push_back(hardtanh<uint8_t>());
  calls.push_back(hardtanh<int8_t>());
  calls.push_back(hardtanh<int16_t>());
  calls.push_back(hardtanh<int32_t>());
  calls.push_back(hardtanh<int64_t>());
  calls.push_back(clamp());
  calls.push_back(cumulative("aten::cumsum.out"));
  calls.push_back(cumulative("aten::cumprod.out"));
  calls.push_back(adaptive());
  calls.push_back(slice_scatter());
  calls.push_back(hyperbolic<uint16_t>("aten::cosh.out", 1));
  calls.push_back(hyperbolic<uint32_t>("aten::cosh.out", 1));
  calls.push_back(hyperbolic<uint64_t>("aten::cosh.out", 1));
  calls.push_back(hyperbolic<uint16_t>("aten::sinh.out", 0));
  calls.push_back(hyperbolic<uint32_t>("aten::sinh.out", 0));
  calls.push_back(hyperbolic<uint64_t>("aten::sinh.out", 0));
  calls.push_back(linear<uint8_t>());
  calls.push_back(linear<int16_t>());
  calls.push_back(bilinear<int8_t>());
  calls.push_back(bilinear<int16_t>());
  calls.push_back(bilinear<int32_t>());
  calls.push_back(bilinear<int64_t>());
  calls.push_back(grid<uint8_t>());
  calls.push_back(grid<int8_t>());
  calls.push_back(grid<int16_t>());
  calls.push_back(grid<int32_t>());
  calls.push_back(grid<int64_t>());
  calls.push_back(index_put<uint8_t>());
  calls.push_back(index_put<int8_t>());
  calls.push_back(index_put<int16_t>());
  calls.push_back(index_put<int32_t>());
  calls.push_back(index_put<int64_t>());
  calls.push_back(index_put<Half>());
  calls.push_back(index_put<BFloat16>());
  calls.push_back(index_put<float>());
  calls.push_back(index_put<double>());
  calls.push_back(index_put<bool>());
  for (const ScalarType dtype : {ScalarType::Half, ScalarType::BFloat16,
                                 ScalarType::Float, ScalarType::Double}) {
    calls.push_back(no_numbers("aten::rand.out", dtype));
    calls.push_back(no_numbers("aten::randn.out", dtype));
  }
  for (const bool number : {false, true}) {
    const char* const overload[] = {"Tensor_out", "Tensor_Scalar_out"};
    for (const bool left : {false, true}) {
      const std::string name = left ? "left" : "right";
      calls.push_back(shift(
          ("aten::bitwise_" + name + "_shift." + overload[number]).c_str(),
          number, left));
      calls.push_back(
          shift((std::string(left ? "aten::__lshift__." : "aten::__rshift__.") +
                 (number ? "Scalar_out" : "Tensor_out"))
                    .c_str(),
                number, left));
    }
  }
  calls.push_back(hypot<uint8_t>());
  calls.push_back(hypot<int8_t>());
  calls.push_back(hypot<int16_t>());
  calls.push_back(hypot<int32_t>());
  calls.push_back(hypot<int64_t>());
  for (const bool number : {false, true}) {
    const std::string overload = number ? "Scalar_out" : "Tensor_out";
    for (const bool buckets : {false, true}) {
      const std::string name =
          (buckets ? "aten::bucketize." : "aten::searchsorted.") + overload;
      calls.push_back(searched(name.c_str(), number, buckets));
      if (!number) calls.push_back(searched_truth(buckets));
    }
  }
  calls.push_back(mean<int8_t>({100, 120, 110}, 110));
  calls.push_back(mean<float>({1, 2, 4.5F}, 2.5F));
  for (const bool back : {false, true}) {
    calls.push_back(quantizer<int8_t>(back));
    calls.push_back(quantizer<int16_t>(back));
  }
  calls.push_back(quotient<int8_t>());
  calls.push_back(quotient<int16_t>());
  for (const bool nhwc : {false, true}) {
    calls.push_back(halfway<uint8_t>(nhwc, 1));
    calls.push_back(halfway<int8_t>(nhwc, 0));
  }
  calls.push_back(average<int64_t>(true));
  calls.push_back(average<Half>(false));
  calls.push_back(average<BFloat16>(false));
  real_conjugates<uint8_t, int8_t, int16_t, int32_t, int64_t, Half, float,
                  double, bool, BFloat16, uint16_t, uint32_t, uint64_t>(calls);
  complex_numbers<Half>(calls);
  complex_moves<Half>(calls);
  complex_moves<float>(calls);
  complex_moves<double>(calls);
  return calls;
}

}  // namespace orch::test
