// Kernel calls for tests.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "orch/kernel.h"
#include "support/test_tensor.h"

/// Prints the code's name in messages.
template <>
struct doctest::StringMaker<orch::Error> {
  static String convert(orch::Error error) { return orch::to_string(error); }
};

namespace orch::test {

/// Builds the arguments of one call:
///
///     CHECK(Call().add(self).add(other).scalar(1).add(out).run(add_out) ==
///           Error::Ok);
class Call {
 public:
  /// A tensor; the same one again is the same value again.
  Call& add(const TestTensor& tensor) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i] == &tensor) {
        indices_.push_back(tensor_values_[i]);
        return *this;
      }
    }
    tensors_.push_back(&tensor);
    Value value;
    value.set_tensor(tensor.tensor());
    tensor_values_.push_back(push(value));
    return *this;
  }
  Call& none() {
    Value value;
    value.set_none();
    push(value);
    return *this;
  }
  Call& integer(int64_t number) {
    Value value;
    value.set_int(number);
    push(value);
    return *this;
  }
  Call& number(double number) {
    Value value;
    value.set_double(number);
    push(value);
    return *this;
  }
  Call& boolean(bool flag) {
    Value value;
    value.set_bool(flag);
    push(value);
    return *this;
  }
  Call& ints(const std::vector<int64_t>& items) {
    std::vector<int64_t>& list = lists_.emplace_back();
    list.reserve(1);  // never null
    for (const int64_t item : items) {
      Value value;
      value.set_int(item);
      list.push_back(static_cast<int64_t>(values_.size()));
      values_.push_back(value);
    }
    Value value;
    value.set_list(Tag::IntList, list.data(),
                   static_cast<uint32_t>(list.size()));
    push(value);
    return *this;
  }

  /// Runs the kernel and checks that no tensor's guards were touched.
  Error run(KernelFn kernel) {
    const Args args(values_.data(), indices_.data(),
                    static_cast<uint32_t>(indices_.size()));
    const Error error = kernel(args);
    for (const TestTensor* tensor : tensors_) CHECK(tensor->intact());
    return error;
  }

 private:
  int32_t push(const Value& value) {
    indices_.push_back(static_cast<int32_t>(values_.size()));
    values_.push_back(value);
    return indices_.back();
  }

  std::vector<Value> values_;
  std::vector<int32_t> indices_;
  std::deque<std::vector<int64_t>> lists_;
  std::vector<const TestTensor*> tensors_;
  std::vector<int32_t> tensor_values_;
};

}  // namespace orch::test
