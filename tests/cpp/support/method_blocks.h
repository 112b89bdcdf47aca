// Memory for methods under test: every block separate and exactly as long as
// the program asks for, so that AddressSanitizer finds each access outside of
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "orch/loader.h"
#include "orch/model.h"

namespace orch::test {

/// A block of its own on the heap, filled with a pattern: at a multiple of 16
/// where sanitizers watch, else of a cache line.
class Block {
 public:
  Block() = default;
  explicit Block(size_t size);
  Block(const uint8_t* bytes, size_t size);

  uint8_t* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  Span<uint8_t> span() const { return {data(), size_}; }
  Span<const uint8_t> bytes() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(uint8_t* block) const { std::free(block); }
  };
  std::unique_ptr<uint8_t[], Free> bytes_;
  size_t size_ = 0;
};

/// Sizes of the arenas of a method by memory id, from id 1, as the program has
/// them: not checked. Empty if they cannot be read.
std::vector<int64_t> arena_sizes(Span<const uint8_t> program, uint32_t method);

/// Arenas of a method.
class Arenas {
 public:
  Arenas() = default;
  /// One block for each size; negative ones count as 0. No more than `limit`
  /// bytes are spent: larger arenas become as small as what is left.
  explicit Arenas(const std::vector<int64_t>& sizes, size_t limit = SIZE_MAX);

  Span<const Span<uint8_t>> spans() const {
    return {spans_.data(), spans_.size()};
  }
  void fill(uint8_t value) const;

 private:
  std::vector<Block> blocks_;
  std::vector<Span<uint8_t>> spans_;
};

/// Memory of a caller for the inputs and outputs that a method leaves to it,
/// each in a block of exactly its size.
class CallerBlocks {
 public:
  explicit CallerBlocks(const ModelMethod& method);

 private:
  std::vector<Block> blocks_;
};

}  // namespace orch::test
