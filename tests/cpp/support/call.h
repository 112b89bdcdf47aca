// Kernel calls for tests.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <deque>
#include <string>
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
    indices_.push_back(value_of(tensor));
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

  Call& text(const std::string& word) {
    const std::string& own = words_.emplace_back(word);
    Value value;
    value.set_list(Tag::String, own.data(), static_cast<uint32_t>(own.size()));
    push(value);
    return *this;
  }
  Call& doubles(const std::vector<double>& items) {
    std::vector<double>& list = double_lists_.emplace_back(items);
    list.reserve(1);  // never null
    Value value;
    value.set_list(Tag::DoubleList, list.data(),
                   static_cast<uint32_t>(list.size()));
    push(value);
    return *this;
  }
  Call& bools(const std::vector<uint8_t>& items) {
    std::vector<uint8_t>& list = bool_lists_.emplace_back(items);
    list.reserve(1);  // never null
    Value value;
    value.set_list(Tag::BoolList, list.data(),
                   static_cast<uint32_t>(list.size()));
    push(value);
    return *this;
  }
  /// A list of tensors; null stands for None.
  Call& tensors(const std::vector<const TestTensor*>& items) {
    std::vector<int32_t>& list = tensor_lists_.emplace_back();
    list.reserve(1);  // never null
    for (const TestTensor* tensor : items) {
      list.push_back(tensor == nullptr ? -1 : value_of(*tensor));
    }
    Value value;
    value.set_list(Tag::TensorList, list.data(),
                   static_cast<uint32_t>(list.size()));
    push(value);
    return *this;
  }

  /// The last argument: what a prim op returns.
  const Value& result() const {
    return values_[static_cast<size_t>(indices_.back())];
  }

  /// Runs the kernel and checks that no tensor's guards were touched.
  Error run(KernelFn kernel) {
    const Args args(values_.data(), indices_.data(),
                    static_cast<uint32_t>(indices_.size()));
    const Error error = kernel(args);
    for (const TestTensor* tensor : tensors_) CHECK(tensor->intact());
    return error;
  }

  /// An argument.
  Value& at(size_t argument) {
    return values_[static_cast<size_t>(indices_[argument])];
  }
  /// All tensors, also those in lists.
  std::vector<Tensor*> tensors() {
    std::vector<Tensor*> found;
    for (const int32_t index : tensor_values_) {
      found.push_back(&values_[static_cast<size_t>(index)].tensor());
    }
    return found;
  }

 private:
  int32_t push(const Value& value) {
    indices_.push_back(static_cast<int32_t>(values_.size()));
    values_.push_back(value);
    return indices_.back();
  }
  /// Index of the value of a tensor.
  int32_t value_of(const TestTensor& tensor) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i] == &tensor) return tensor_values_[i];
    }
    tensors_.push_back(&tensor);
    tensor_values_.push_back(static_cast<int32_t>(values_.size()));
    values_.emplace_back().set_tensor(tensor.tensor());
    return tensor_values_.back();
  }

  std::vector<Value> values_;
  std::vector<int32_t> indices_;
  std::deque<std::vector<int64_t>> lists_;
  std::deque<std::string> words_;
  std::deque<std::vector<double>> double_lists_;
  std::deque<std::vector<uint8_t>> bool_lists_;
  std::deque<std::vector<int32_t>> tensor_lists_;
  std::vector<const TestTensor*> tensors_;
  std::vector<int32_t> tensor_values_;
};

}  // namespace orch::test
