// Calls with the results to expect: recorded ones, read from a file, and
// hand-made ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/call.h"
#include "util/dtype.h"

namespace orch::test {

/// Largest errors seen: in units of the last place of the result, which is much
/// where a sum cancels out, and as a share of what is allowed.
struct Worst {
  double ulps = 0;
  double share = 0;
};

/// One call of an operator. Arguments are added in the order of the schema.
class ReferenceCall {
 public:
  explicit ReferenceCall(std::string operator_name, double allowed_absolute = 0,
                         double allowed_relative = 0)
      : name(std::move(operator_name)),
        atol(allowed_absolute),
        rtol(allowed_relative) {}

  ReferenceCall& none() {
    call_.none();
    return other();
  }
  ReferenceCall& integer(int64_t value) {
    call_.integer(value);
    return other();
  }
  ReferenceCall& number(double value) {
    call_.number(value);
    return other();
  }
  ReferenceCall& boolean(bool value) {
    call_.boolean(value);
    return other();
  }
  ReferenceCall& ints(const std::vector<int64_t>& items) {
    call_.ints(items);
    return other();
  }
  ReferenceCall& word(const std::string& value) {
    call_.text(value);
    return other();
  }
  ReferenceCall& input(TestTensor tensor) {
    call_.add(inputs_.emplace_back(std::move(tensor)));
    return is_tensor(inputs_.back());
  }
  /// An output, with the result to expect.
  ReferenceCall& output(TestTensor tensor) {
    const TestTensor& out = out_like(std::move(tensor));
    call_.add(out);
    return is_tensor(out);
  }

  ReferenceCall& doubles(const std::vector<double>& items) {
    call_.doubles(items);
    return other();
  }
  ReferenceCall& bools(const std::vector<uint8_t>& items) {
    call_.bools(items);
    return other();
  }
  /// A list of inputs; nothing stands for None.
  ReferenceCall& inputs(std::deque<std::optional<TestTensor>> items) {
    std::vector<const TestTensor*> list;
    DtypeSet dtypes;
    for (std::optional<TestTensor>& item : items) {
      const TestTensor* tensor = nullptr;
      if (item) tensor = &inputs_.emplace_back(std::move(*item));
      if (item) dtypes = dtypes | dtype_set(tensor->dtype());
      list.push_back(tensor);
    }
    call_.tensors(list);
    dtypes_.push_back(dtypes);
    return *this;
  }
  /// A list of outputs, with the results to expect.
  ReferenceCall& outputs(std::deque<TestTensor> items) {
    std::vector<const TestTensor*> list;
    DtypeSet dtypes;
    for (TestTensor& item : items) {
      list.push_back(&out_like(std::move(item)));
      dtypes = dtypes | dtype_set(list.back()->dtype());
    }
    call_.tensors(list);
    dtypes_.push_back(dtypes);
    return *this;
  }

  /// A number that the operator returns: it follows the arguments.
  ReferenceCall& gives(bool want) {
    want_.set_bool(want);
    returns_ = true;
    return boolean(!want);
  }
  ReferenceCall& gives(int64_t want) {
    want_.set_int(want);
    returns_ = true;
    return integer(~want);
  }
  ReferenceCall& gives(double want) {
    want_.set_double(want);
    returns_ = true;
    return number(-want);
  }

  /// The number that it returns; null if it returns none.
  const Value* returned() const { return returns_ ? &call_.result() : nullptr; }

  size_t argument_count() const { return dtypes_.size(); }
  /// Dtypes of the tensors of an argument; none if it has no tensor.
  DtypeSet dtypes(size_t argument) const { return dtypes_[argument]; }
  const std::deque<TestTensor>& outs() const { return outs_; }

  Error run(KernelFn kernel) { return call_.run(kernel); }
  /// Lets the output, the last argument, have the memory of an input; null if
  /// that has another dtype, other sizes or another dim order. The input's
  /// memory, where the result then is.
  const uint8_t* write_over(size_t input) {
    Tensor& out = call_.at(argument_count() - 1).tensor();
    const Tensor& from = call_.at(input).tensor();
    if (from.dtype != out.dtype || from.dim != out.dim) return nullptr;
    for (uint8_t i = 0; i < out.dim; ++i) {
      if (from.dims[i] != out.dims[i] || from.order()[i] != out.order()[i]) {
        return nullptr;
      }
    }
    out.memory = from.memory;
    return static_cast<const uint8_t*>(out.memory);
  }
  /// All tensors that it takes and gives, also those in lists.
  std::vector<Tensor*> tensors() { return call_.tensors(); }
  /// After a run: what is wrong with an output, empty if nothing is.
  std::string difference(size_t out, Worst& worst) const;
  /// After a run: whether the number it returns, if any, is the one to expect.
  bool right_result() const {
    return !returns_ || (call_.result().tag() == want_.tag() &&
                         call_.result().to_int() == want_.to_int());
  }
  /// Whether no byte of the outputs was written.
  bool unwritten() const;

  std::string name;
  double atol;
  double rtol;

 private:
  ReferenceCall& other() {
    dtypes_.push_back({});
    return *this;
  }
  ReferenceCall& is_tensor(const TestTensor& tensor) {
    dtypes_.push_back(dtype_set(tensor.dtype()));
    return *this;
  }
  /// Keeps a result to expect, and makes the output for it.
  const TestTensor& out_like(TestTensor tensor) {
    const TestTensor& want = wants_.emplace_back(std::move(tensor));
    const Tensor t = want.tensor();
    return outs_.emplace_back(want.dtype(), want.sizes(),
                              Order(t.order(), t.order() + t.dim));
  }

  Call call_;
  std::deque<TestTensor> inputs_, wants_, outs_;
  std::vector<DtypeSet> dtypes_;  // by argument
  Value want_;
  bool returns_ = false;
};

/// Reads the files that tests/data/kernels/make_reference.py writes; the format
/// is described in reference_format.py.
class ReferenceReader {
 public:
  explicit ReferenceReader(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    if (text(8) != "ORCHREF1") std::abort();
    left_ = get<uint32_t>();
  }

  /// Calls that were not read yet.
  uint32_t left() const { return left_; }
  /// Whether the file ends where the last call does.
  bool at_end() const { return at_ == bytes_.size(); }

  ReferenceCall next() {
    --left_;
    const std::string name = text(get<uint8_t>());
    const double atol = get<double>();
    ReferenceCall call(name, atol, get<double>());
    for (int arguments = get<uint8_t>(); arguments > 0; --arguments) {
      switch (get<uint8_t>()) {
        case 0:
          call.none();
          break;
        case 1:
          call.input(tensor());
          break;
        case 2:
          call.integer(get<int64_t>());
          break;
        case 3:
          call.number(get<double>());
          break;
        case 4:
          call.boolean(get<uint8_t>() != 0);
          break;
        case 5: {
          std::vector<int64_t> items(get<uint32_t>());
          for (int64_t& item : items) item = get<int64_t>();
          call.ints(items);
          break;
        }
        case 6:
          call.output(tensor());
          break;
        case 7:
          call.word(text(get<uint32_t>()));
          break;
        case 8: {
          std::deque<std::optional<TestTensor>> items(get<uint32_t>());
          for (auto& item : items) {
            if (get<uint8_t>() != 0) item.emplace(tensor());
          }
          call.inputs(std::move(items));
          break;
        }
        case 9: {
          std::deque<TestTensor> items;
          for (uint32_t left = get<uint32_t>(); left > 0; --left) {
            items.push_back(tensor());
          }
          call.outputs(std::move(items));
          break;
        }
        case 10: {
          std::vector<double> items(get<uint32_t>());
          for (double& item : items) item = get<double>();
          call.doubles(items);
          break;
        }
        case 12: {
          std::vector<uint8_t> items(get<uint32_t>());
          for (uint8_t& item : items) item = get<uint8_t>();
          call.bools(items);
          break;
        }
        case 11:
          give(get<uint8_t>(), call);
          break;
        default:
          std::abort();
      }
    }
    return call;
  }

 private:
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
  /// A number of a kind that the call returns; which one is not checked.
  static void give(uint8_t kind, ReferenceCall& call) {
    if (kind == 2) {
      call.gives(int64_t{0});
    } else if (kind == 3) {
      call.gives(0.0);
    } else {
      call.gives(false);
    }
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

  std::vector<char> bytes_;
  size_t at_ = 0;
  uint32_t left_ = 0;
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
    if constexpr (kIsComplex<T>) {
      using Wide = Complex<double>;
      const Wide want = convert<Wide>(wants[i]);
      const Wide got = convert<Wide>(gots[i]);
      const bool nan = std::isnan(want.real) || std::isnan(want.imag);
      if (nan && (std::isnan(got.real) || std::isnan(got.imag))) continue;
      if (want.real == got.real && want.imag == got.imag) continue;
      const double error =
          std::hypot(got.real - want.real, got.imag - want.imag);
      const double allowed = atol + rtol * std::hypot(want.real, want.imag);
      if (error > 0) worst.share = std::max(worst.share, error / allowed);
      if (error <= allowed) continue;
      difference = std::to_string(got.real) + ", " + std::to_string(got.imag) +
                   " for " + std::to_string(want.real) + ", " +
                   std::to_string(want.imag);
    } else if constexpr (kIsFloating<T>) {
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

inline std::string ReferenceCall::difference(size_t out, Worst& worst) const {
  std::string found;
  const Error known = switch_dtype<~0U>(outs_[out].dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    found = compare<T>(wants_[out], outs_[out], atol, rtol, worst);
    return Error::Ok;
  });
  return known == Error::Ok ? found : "the dtype is unknown";
}

inline bool ReferenceCall::unwritten() const {
  for (const TestTensor& out : outs_) {
    for (size_t i = 0; i < out.bytes(); ++i) {
      if (out.data()[i] != TestTensor::kPattern) return false;
    }
  }
  return true;
}

}  // namespace orch::test
