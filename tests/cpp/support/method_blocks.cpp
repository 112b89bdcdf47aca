#include "support/method_blocks.h"

#include <algorithm>
#include <cstring>

#include "flatbuffer.h"
#include "orch/caller.h"

namespace orch {

/// Programs of tests are given their data where they are loaded.
extern const Span<const ModelData> kModelData;
const Span<const ModelData> kModelData{};

}  // namespace orch

namespace orch::test {
namespace {

#if defined(__has_feature)
#define ORCH_FEATURE(name) __has_feature(name)
#else
#define ORCH_FEATURE(name) 0
#endif

#if ORCH_FEATURE(address_sanitizer)
constexpr size_t kAlignment = 16;
#else
// Times depend on where in a cache line an arena begins.
constexpr size_t kAlignment = 64;
#endif

}  // namespace

Block::Block(size_t size) : size_(size) {
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, size) != 0) std::abort();
  bytes_.reset(static_cast<uint8_t*>(block));
  if (size != 0) std::memset(block, 0xA5, size);
}

Block::Block(const uint8_t* bytes, size_t size) : Block(size) {
  if (size != 0) std::memcpy(data(), bytes, size);
}

std::vector<int64_t> arena_sizes(Span<const uint8_t> program, uint32_t method) {
  FbReader reader(program.data(), static_cast<uint32_t>(program.size()));
  const FbTable root = reader.root();
  const FbVector plans = reader.vector(root, slot::kExecutionPlan, 4);
  if (reader.failed() || method >= plans.count) return {};
  const FbTable plan = reader.item(plans, method, slot::kExecutionPlan);
  const FbVector at = reader.vector(plan, slot::kBufferSizes, 8);
  std::vector<int64_t> sizes;
  for (uint32_t id = 1; id < at.count; ++id) {
    sizes.push_back(reader.read<int64_t>(at.at + 8 * id));
  }
  return reader.failed() ? std::vector<int64_t>{} : sizes;
}

Arenas::Arenas(const std::vector<int64_t>& sizes, size_t limit) {
  for (const int64_t wanted : sizes) {
    const uint64_t size = static_cast<uint64_t>(std::max<int64_t>(wanted, 0));
    blocks_.emplace_back(static_cast<size_t>(std::min<uint64_t>(size, limit)));
    limit -= blocks_.back().size();
    spans_.push_back(blocks_.back().span());
  }
}

void Arenas::fill(uint8_t value) const {
  for (const Span<uint8_t>& arena : spans_) {
    if (!arena.empty()) std::memset(arena.data(), value, arena.size());
  }
}

CallerBlocks::CallerBlocks(const ModelMethod& method) {
  const MethodImage& image = method.loaded->image;
  clear_memory(method);
  const auto give = [this](Value& value) {
    if (!value.is_tensor()) return;
    const Tensor& tensor = value.tensor();
    if ((tensor.flags & Tensor::kCaller) == 0 || tensor.memory != nullptr) {
      return;
    }
    const bool dynamic = (tensor.flags & Tensor::kDynamic) != 0;
    blocks_.emplace_back(dynamic ? static_cast<size_t>(tensor.dims[-1])
                                 : tensor.nbytes());
    if (set_memory(value, blocks_.back().data()) != Error::Ok) std::abort();
  };
  for (uint32_t i = 0; i < image.inputs.size(); ++i) give(input(method, i));
  for (uint32_t i = 0; i < image.outputs.size(); ++i) give(output(method, i));
  if (check_memory(method) != Error::Ok) std::abort();
}

}  // namespace orch::test
