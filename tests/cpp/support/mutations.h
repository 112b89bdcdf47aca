// Changes to programs that are likely to get past the first checks, the same
// for the same seed everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orch::test {

using Bytes = std::vector<uint8_t>;

/// SplitMix64: the same numbers everywhere, unlike the distributions of
/// <random>.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  size_t below(size_t count) { return static_cast<size_t>(next() % count); }

 private:
  uint64_t state_;
};

/// Changes a byte, or the word that it is in: a bit, an edge, a neighbour, or a
/// word from somewhere else. `size` is not 0.
void change(uint8_t* bytes, size_t size, Random& random);

/// Changes a flatbuffer by its structure, which is found without its schema:
/// gives a field of a table a number, drops one, exchanges two, or has an
/// offset lead where another one leads. Changes a word if nothing of this is
/// found.
void change_structure(uint8_t* bytes, size_t size, Random& random);

/// Copies whole words of one program over those of another, at most `most`.
void cross(uint8_t* bytes, size_t size, const uint8_t* other, size_t other_size,
           size_t most, Random& random);

}  // namespace orch::test
