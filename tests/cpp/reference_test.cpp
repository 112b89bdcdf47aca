// Every call of tests/data/kernels/reference.bin, made by PyTorch.
//
// ORCH_REFERENCE names the file. ORCH_REPORT=1 prints the largest error of each
// operator and dtype: in units of the last place of the result, which is much
// where a sum cancels out, and as a share of the tolerance.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "support/call.h"
#include "support/kernels.h"
#include "util/dtype.h"

namespace orch::test {
namespace {

struct Operator {
  KernelFn kernel;
  int calls;
};

std::map<std::string, Operator> operators() {
  using namespace portable;
  return {
      {"aten::_native_batch_norm_legit_no_training.out",
       {_native_batch_norm_legit_no_training_out, 0}},
      {"aten::_softmax.out", {_softmax_out, 0}},
      {"aten::add.out", {add_out, 0}},
      {"aten::addmm.out", {addmm_out, 0}},
      {"aten::avg_pool2d.out", {avg_pool2d_out, 0}},
      {"aten::convolution.out", {convolution_out, 0}},
      {"aten::max_pool2d_with_indices.out", {max_pool2d_with_indices_out, 0}},
      {"aten::mm.out", {mm_out, 0}},
      {"aten::permute_copy.out", {permute_copy_out, 0}},
      {"aten::relu.out", {relu_out, 0}},
      {"aten::tanh.out", {tanh_out, 0}},
  };
}

struct Worst {
  double ulps = 0;
  double share = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  bool done() const { return at_ == bytes_.size(); }
  void copy(void* to, size_t count) {
    if (count > bytes_.size() - at_) std::abort();
    std::memcpy(to, bytes_.data() + at_, count);
    at_ += count;
  }
  template <typename T>
  T get() {
    T value;
    copy(&value, sizeof value);
    return value;
  }
  std::string text(size_t count) {
    std::string found(count, '\0');
    copy(found.data(), count);
    return found;
  }
  TestTensor tensor() {
    const auto dtype = static_cast<ScalarType>(get<uint8_t>());
    const size_t rank = get<uint8_t>();
    Sizes sizes(rank);
    Order order(rank);
    for (int32_t& size : sizes) size = get<int32_t>();
    for (uint8_t& dim : order) dim = get<uint8_t>();
    TestTensor made(dtype, sizes, order);
    copy(made.data(), made.bytes());
    return made;
  }

 private:
  std::vector<char> bytes_;
  size_t at_ = 0;
};

/// Distance to the next number of type T beyond `value`.
template <typename T>
double last_place(double value) {
  const int digits = kIsSame<T, double>     ? 53
                     : kIsSame<T, float>    ? 24
                     : kIsSame<T, Half>     ? 11
                     : kIsSame<T, BFloat16> ? 8
                                            : 1024;
  const int smallest = kIsSame<T, double>     ? -1074
                       : kIsSame<T, Half>     ? -24
                       : kIsSame<T, BFloat16> ? -133
                                              : -149;
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - digits, smallest));
}

/// Empty if all items agree, else a description of the first that does not.
template <typename T>
std::string compare(const TestTensor& want_tensor, const TestTensor& got_tensor,
                    double atol, double rtol, Worst& worst) {
  const std::vector<T> wants = want_tensor.items<T>();
  const std::vector<T> gots = got_tensor.items<T>();
  for (size_t i = 0; i < wants.size(); ++i) {
    std::string difference;
    if constexpr (kIsFloating<T>) {
      const double want = convert<double>(wants[i]);
      const double got = convert<double>(gots[i]);
      const double error = std::fabs(got - want);
      if (std::isnan(want) || std::isinf(want)) {
        const bool same = std::isnan(want) ? std::isnan(got) : want == got;
        if (same) continue;
      } else if (std::signbit(want) == std::signbit(got) || want != 0 ||
                 atol != 0) {
        const double allowed = atol + rtol * std::fabs(want);
        worst.ulps = std::max(worst.ulps, error / last_place<T>(want));
        if (error > 0) worst.share = std::max(worst.share, error / allowed);
        if (error <= allowed) continue;
      }
      difference = std::to_string(got) + " for " + std::to_string(want);
    } else {
      if (wants[i] == gots[i]) continue;
      difference = std::to_string(gots[i]) + " for " + std::to_string(wants[i]);
    }
    return "item " + std::to_string(i) + ": " + difference;
  }
  return "";
}

TEST_CASE("kernels give what PyTorch gives") {
  const char* const path = std::getenv("ORCH_REFERENCE");
  REQUIRE_MESSAGE(path != nullptr, "ORCH_REFERENCE is not set");
  Reader reader(path);
  REQUIRE(reader.text(8) == "ORCHREF1");
  const uint32_t count = reader.get<uint32_t>();
  std::map<std::string, Operator> table = operators();
  std::map<std::pair<std::string, int>, Worst> worst;

  for (uint32_t number = 0; number < count; ++number) {
    const std::string name = reader.text(reader.get<uint8_t>());
    const double atol = reader.get<double>();
    const double rtol = reader.get<double>();
    Call call;
    std::deque<TestTensor> inputs, wants, outs;
    for (int left = reader.get<uint8_t>(); left > 0; --left) {
      switch (reader.get<uint8_t>()) {
        case 0:
          call.none();
          break;
        case 1:
          call.add(inputs.emplace_back(reader.tensor()));
          break;
        case 2:
          call.integer(reader.get<int64_t>());
          break;
        case 3:
          call.number(reader.get<double>());
          break;
        case 4:
          call.boolean(reader.get<uint8_t>() != 0);
          break;
        case 5: {
          std::vector<int64_t> items(reader.get<uint32_t>());
          for (int64_t& item : items) item = reader.get<int64_t>();
          call.ints(items);
          break;
        }
        default: {
          const TestTensor& want = wants.emplace_back(reader.tensor());
          const Tensor t = want.tensor();
          call.add(outs.emplace_back(want.dtype(), want.sizes(),
                                     Order(t.order, t.order + t.dim)));
        }
      }
    }
    REQUIRE(table.count(name) == 1);
    ++table[name].calls;
    CAPTURE(number);
    CAPTURE(name);
    REQUIRE(call.run(table[name].kernel) == Error::Ok);
    for (size_t i = 0; i < outs.size(); ++i) {
      const ScalarType dtype = outs[i].dtype();
      std::string difference;
      Worst& record = worst[{name, static_cast<int>(dtype)}];
      const Error known = switch_dtype<~0U>(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        difference = compare<T>(wants[i], outs[i], atol, rtol, record);
        return Error::Ok;
      });
      CHECK(known == Error::Ok);
      CHECK(difference == "");
    }
  }
  CHECK(reader.done());
  for (const auto& [name, entry] : table) {
    CAPTURE(name);
    CHECK(entry.calls > 0);
  }
  if (std::getenv("ORCH_REPORT") != nullptr) {
    for (const auto& [key, error] : worst) {
      std::printf("%s dtype %d: %.3g ulp, %.2f of the tolerance\n",
                  key.first.c_str(), key.second, error.ulps, error.share);
    }
  }
}

}  // namespace
}  // namespace orch::test
