// Kernels whose tensors lie on top of each other, as a program may plan them:
// what they give is wrong then, but nothing else in memory is touched, and
// nothing they do is undefined. The sanitizers watch.
//
// The calls are those of ORCH_REFERENCE and ORCH_CORTEX_M.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "support/method_blocks.h"
#include "support/operators.h"
#include "support/reference.h"

namespace orch::test {
namespace {

/// Gives two tensors one block of memory, in which the first one begins `by`
/// items behind the second.
class Overlap {
 public:
  Overlap(Tensor& moved, Tensor& other, ptrdiff_t by)
      : moved_(moved),
        other_(other),
        moved_memory_(moved.memory),
        other_memory_(other.memory) {
    const size_t items = item_bytes(moved.dtype);
    const size_t step = std::max(items, item_bytes(other.dtype));
    const size_t offset = static_cast<size_t>(std::abs(by)) * step;
    const size_t moved_at = by > 0 ? offset : 0;
    const size_t other_at = by < 0 ? offset : 0;
    block_ =
        Block(std::max(moved_at + moved.nbytes(), other_at + other.nbytes()));
    put(moved_, moved_at);
    put(other_, other_at);
  }
  ~Overlap() {
    moved_.memory = moved_memory_;
    other_.memory = other_memory_;
  }
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

 private:
  void put(Tensor& tensor, size_t at) {
    uint8_t* const to = block_.data() + at;
    if (tensor.nbytes() != 0) std::memcpy(to, tensor.memory, tensor.nbytes());
    tensor.memory = to;
  }

  Tensor& moved_;
  Tensor& other_;
  void* moved_memory_;
  void* other_memory_;
  Block block_{0};
};

TEST_CASE("tensors on top of each other do no harm") {
  const std::map<std::string, KernelFn> table = all_kernels();
  std::map<std::string, int> runs;
  for (const char* variable : {"ORCH_REFERENCE", "ORCH_CORTEX_M"}) {
    const char* const path = std::getenv(variable);
    REQUIRE_MESSAGE(path != nullptr, variable << " is not set");
    ReferenceReader reader(path);
    while (reader.left() > 0) {
      ReferenceCall call = reader.next();
      const KernelFn kernel = table.at(call.name);
      const std::vector<Tensor*> tensors = call.tensors();
      // Outputs come last.
      const size_t inputs = tensors.size() - call.outs().size();
      for (size_t out = inputs; out < tensors.size(); ++out) {
        for (size_t other = 0; other < out; ++other) {
          // A Bool is 0 or 1; which truth value other bytes are, nobody says.
          if (tensors[out]->dtype != tensors[other]->dtype &&
              (tensors[out]->dtype == ScalarType::Bool ||
               tensors[other]->dtype == ScalarType::Bool)) {
            continue;
          }
          for (const ptrdiff_t by : {-5, -1, 0, 1, 5}) {
            const Overlap overlap(*tensors[out], *tensors[other], by);
            (void)call.run(kernel);
            ++runs[call.name];
          }
        }
      }
    }
  }
  // Those without an input have nothing to lie on.
  CHECK(runs["cortex_m::pad.out"] > 100);
  CHECK(runs.size() > 80);
}

}  // namespace
}  // namespace orch::test
