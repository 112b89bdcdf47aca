// Tensors for tests: they own their memory, with guards around it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "orch/tensor.h"

#if defined(__SANITIZE_ADDRESS__)
#define ORCH_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ORCH_TEST_ASAN 1
#endif
#endif
#ifdef ORCH_TEST_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace orch::test {

using Sizes = std::vector<int32_t>;
using Order = std::vector<uint8_t>;

/// A tensor whose memory is exactly as long as it says. Every access outside is
/// an error under AddressSanitizer; without it, `intact` finds stray writes.
class TestTensor {
 public:
  /// An empty `order` is contiguous. The items are filled with a pattern.
  TestTensor(ScalarType dtype, Sizes sizes, Order order = {})
      : dtype_(dtype), sizes_(std::move(sizes)), order_(std::move(order)) {
    if (order_.empty()) {
      for (size_t i = 0; i < sizes_.size(); ++i) {
        order_.push_back(static_cast<uint8_t>(i));
      }
    }
    bytes_ = item_bytes(dtype);
    for (const int32_t size : sizes_) bytes_ *= static_cast<size_t>(size);
    block_.reset(new (std::align_val_t{16}) uint8_t[bytes_ + 2 * kGuard]);
    std::memset(block_.get(), kPattern, bytes_ + 2 * kGuard);
    poison(true);
    // Room for the capacity that lies before the sizes of a dynamic tensor, and
    // never null.
    sizes_.insert(sizes_.begin(), 0);
    order_.reserve(1);
    for (size_t i = 0; i < order_.size(); ++i) contiguous_ &= order_[i] == i;
  }
  TestTensor(TestTensor&&) = default;
  ~TestTensor() {
    if (block_) poison(false);
  }

  /// Items in memory order.
  template <typename T>
  static TestTensor of(Sizes sizes, std::vector<T> items, Order order = {}) {
    TestTensor made(DtypeOf<T>::value, std::move(sizes), std::move(order));
    if (items.size() * sizeof(T) != made.bytes_) std::abort();
    for (size_t i = 0; i < items.size(); ++i) {
      const T item = items[i];
      std::memcpy(made.data() + i * sizeof(T), &item, sizeof(T));
    }
    return made;
  }

  /// Lets the sizes change; the memory that is there now is the capacity.
  TestTensor&& dynamic() && {
    dynamic_ = true;
    sizes_[0] = static_cast<int32_t>(bytes_);
    return std::move(*this);
  }

  Tensor tensor() const {
    Tensor t{};
    t.tag = Tag::Tensor;
    t.dtype = dtype_;
    t.dim = static_cast<uint8_t>(order_.size());
    t.flags = static_cast<uint8_t>((contiguous_ ? Tensor::kContiguous : 0) |
                                   (dynamic_ ? Tensor::kDynamic : 0));
    t.memory = block_.get() + kGuard;
    t.dims = sizes_.data() + 1;
    t.dim_order = order_.data();
    return t;
  }

  Sizes sizes() const { return {sizes_.begin() + 1, sizes_.end()}; }
  uint8_t* data() const { return block_.get() + kGuard; }
  size_t bytes() const { return bytes_; }
  ScalarType dtype() const { return dtype_; }

  /// All items of the memory, in memory order.
  template <typename T>
  std::vector<T> items() const {
    std::vector<T> found;
    for (size_t i = 0; i < bytes_ / sizeof(T); ++i) {
      T item;
      std::memcpy(&item, data() + i * sizeof(T), sizeof(T));
      found.push_back(item);
    }
    return found;
  }

  /// Whether nothing was written before or after the memory.
  bool intact() const {
    poison(false);
    bool same = true;
    for (size_t i = 0; i < kGuard; ++i) {
      same &= block_[i] == kPattern;
      same &= block_[kGuard + bytes_ + i] == kPattern;
    }
    poison(true);
    return same;
  }

  static constexpr uint8_t kPattern = 0xA5;

 private:
  static constexpr size_t kGuard = 32;
  struct Free {
    void operator()(uint8_t* block) const {
      ::operator delete[](block, std::align_val_t{16});
    }
  };

  void poison([[maybe_unused]] bool on) const {
#ifdef ORCH_TEST_ASAN
    uint8_t* const begin = block_.get();
    if (on) {
      __asan_poison_memory_region(begin, kGuard);
      __asan_poison_memory_region(begin + kGuard + bytes_, kGuard);
    } else {
      __asan_unpoison_memory_region(begin, 2 * kGuard + bytes_);
    }
#endif
  }

  ScalarType dtype_;
  Sizes sizes_;  // after the capacity
  Order order_;
  size_t bytes_ = 0;
  bool contiguous_ = true;
  bool dynamic_ = false;
  std::unique_ptr<uint8_t[], Free> block_;
};

}  // namespace orch::test
