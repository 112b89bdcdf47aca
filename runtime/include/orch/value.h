// Values: the slots of a method, and the arguments of a kernel.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "orch/error.h"
#include "orch/tensor.h"

namespace orch {

class Value;

/// A list in flash. What `items` points to depends on the tag: value indices
/// (`IntItem`: IntList; `ValueIndex`: TensorList), doubles, bools, or chars.
struct List {
  Tag tag;
  uint32_t count;
  const void* items;

  /// Value index of an item of a TensorList; -1 where it is None.
  int32_t tensor_index(uint32_t index) const {
    const ValueIndex at = static_cast<const ValueIndex*>(items)[index];
    return at == kNoValue ? -1 : at;
  }
};

/// An int, a double or a bool; its bits are split so that it needs no padding.
struct Scalar {
  Tag tag;
  uint32_t words[2];

  int64_t bits() const {
    return static_cast<int64_t>(static_cast<uint64_t>(words[1]) << 32 |
                                words[0]);
  }
  void set_bits(int64_t bits) {
    words[0] = static_cast<uint32_t>(bits);
    words[1] = static_cast<uint32_t>(static_cast<uint64_t>(bits) >> 32);
  }
  bool is_floating() const { return tag == Tag::Double; }
  bool is_bool() const { return tag == Tag::Bool; }
  /// The value of a double.
  double as_double() const {
    const int64_t b = bits();
    double value;
    memcpy(&value, &b, sizeof value);
    return value;
  }
  /// The value as a double, whatever it holds.
  double to_double() const {
    return tag == Tag::Double ? as_double() : static_cast<double>(bits());
  }
  /// The value as an integer; a double is truncated, out of range saturates.
  int64_t to_int() const;
  /// The value as the C++ type of a dtype, converted as PyTorch does.
  template <typename T>
  T to() const {
    if (tag == Tag::Double) return static_cast<T>(to_double());
    return static_cast<T>(bits());
  }
};

/// One slot of a method: 16 bytes on a 32-bit core, 12 in compact tables.
class Value {
 public:
  Value() = default;
  constexpr explicit Value(const Scalar& scalar) : scalar_(scalar) {}
  constexpr explicit Value(const Tensor& tensor) : tensor_(tensor) {}
  constexpr explicit Value(const List& list) : list_(list) {}

  Tag tag() const { return scalar_.tag; }
  bool is_none() const { return tag() == Tag::None; }
  bool is_tensor() const { return tag() == Tag::Tensor; }
  bool is_scalar() const {
    return tag() == Tag::Int || tag() == Tag::Double || tag() == Tag::Bool;
  }

  // Each accessor trusts that the tag fits.
  Tensor& tensor() { return tensor_; }
  const Tensor& tensor() const { return tensor_; }
  const Scalar& scalar() const { return scalar_; }
  const List& list() const { return list_; }
  int64_t to_int() const { return scalar_.bits(); }
  bool to_bool() const { return scalar_.words[0] != 0; }
  double to_double() const { return scalar_.to_double(); }

  void set_none() { scalar_.tag = Tag::None; }
  void set_int(int64_t value) {
    scalar_.tag = Tag::Int;
    scalar_.set_bits(value);
  }
  void set_bool(bool value) {
    scalar_.tag = Tag::Bool;
    scalar_.set_bits(value ? 1 : 0);
  }
  void set_double(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    scalar_.tag = Tag::Double;
    scalar_.set_bits(bits);
  }
  void set_list(Tag tag, const void* items, uint32_t count) {
    list_.tag = tag;
    list_.count = count;
    list_.items = items;
  }
  void set_tensor(const Tensor& tensor) { tensor_ = tensor; }

 private:
  // All members begin with the tag (common initial sequence).
  union {
    Scalar scalar_;
    Tensor tensor_;
    List list_;
  };
};

static_assert(sizeof(Value) == (kCompact ? 3 : 4) * sizeof(void*),
              "the build counts with this size");

/// A list of integers, `int[]`; each item is an Int value of the method.
class IntList {
 public:
  IntList(const List& list, const Value* values)
      : list_(list), values_(values) {}
  int size() const { return static_cast<int>(list_.count); }
  int64_t operator[](int index) const;

 private:
  const List& list_;
  const Value* values_;
};

/// A list of tensors, `Tensor[]` or `Tensor?[]`.
class TensorList {
 public:
  TensorList(const List& list, Value* values) : list_(list), values_(values) {}
  int size() const { return static_cast<int>(list_.count); }
  /// The tensor, or null where the list holds None.
  Tensor* operator[](int index) const {
    const int32_t at = list_.tensor_index(static_cast<uint32_t>(index));
    return at < 0 || !values_[at].is_tensor() ? nullptr : &values_[at].tensor();
  }

 private:
  const List& list_;
  Value* values_;
};

/// The arguments of one kernel call, in the order of the op schema; the returns
/// follow and are the same values as the out arguments.
///
/// Trusted: number and kinds of the arguments. They are checked against the
/// kernel's signature when the method is loaded (or built).
class Args {
 public:
  Args(Value* values, const ValueIndex* indices, uint32_t count)
      : values_(values), indices_(indices), count_(count) {}

  uint32_t count() const { return count_; }
#ifndef __clang__  // whose calls would cost more than they save
  ORCH_ONCE
#endif
  Value& value(int index) const { return values_[indices_[index]]; }
  bool has(int index) const { return !value(index).is_none(); }

  Tensor& tensor(int index) const { return value(index).tensor(); }
  /// The tensor, or null for None.
  Tensor* optional_tensor(int index) const {
    return has(index) ? &tensor(index) : nullptr;
  }
  TensorList tensor_list(int index) const {
    return {value(index).list(), values_};
  }
  const Scalar& scalar(int index) const { return value(index).scalar(); }
  int64_t integer(int index) const { return value(index).to_int(); }
  bool boolean(int index) const { return value(index).to_bool(); }
  /// A `float`.
  double real(int index) const { return value(index).scalar().as_double(); }
  /// A `Scalar`, whatever it holds.
  double number(int index) const { return value(index).to_double(); }
  IntList int_list(int index) const { return {value(index).list(), values_}; }
  /// A list of doubles, `float[]`.
  Span<const double> double_list(int index) const {
    const List& list = value(index).list();
    return {static_cast<const double*>(list.items), list.count};
  }

 private:
  Value* values_;
  const ValueIndex* indices_;
  uint32_t count_;
};

}  // namespace orch
