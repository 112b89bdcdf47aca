#include "support/program_builder.h"

#include <algorithm>

namespace orch::test {
namespace {

/// Writes nodes front to back: whatever a node points to follows it.
class Writer {
 public:
  std::vector<uint8_t> bytes;

  /// Offsets count from where they are stored.
  void point(size_t from, size_t to) {
    const uint32_t offset = static_cast<uint32_t>(to - from);
    std::memcpy(&bytes[from], &offset, sizeof offset);
  }
  size_t write(const Node& node) {
    return node.is_table ? write_table(node) : write_vector(node);
  }
  void pad(size_t alignment) {
    while (bytes.size() % alignment != 0) bytes.push_back(0);
  }
  template <typename T>
  void put(T value) {
    for (const uint8_t byte : bytes_of(value)) bytes.push_back(byte);
  }

 private:
  size_t write_table(const Node& node) {
    // Slots in order, each field aligned to its size; 4 bytes for an offset.
    uint32_t slots = 0;
    for (const Node::Field& field : node.fields) {
      slots = std::max(slots, field.slot + 1);
    }
    std::vector<uint16_t> at(slots, 0);
    size_t size = 4;
    for (const Node::Field& field : node.fields) {
      if (field.to == nullptr && field.scalar.empty()) continue;
      const size_t width = field.to != nullptr ? 4 : field.scalar.size();
      size = (size + width - 1) / width * width;
      at[field.slot] = static_cast<uint16_t>(size);
      size += width;
    }
    pad(8);
    const size_t vtable = bytes.size();
    put(static_cast<uint16_t>(4 + 2 * slots));
    put(static_cast<uint16_t>(size));
    for (const uint16_t offset : at) put(offset);
    pad(8);
    const size_t start = bytes.size();
    bytes.resize(start + size);
    const int32_t back = static_cast<int32_t>(start - vtable);
    std::memcpy(&bytes[start], &back, sizeof back);
    for (const Node::Field& field : node.fields) {
      const size_t place = start + at[field.slot];
      if (field.to != nullptr) {
        const size_t to = write(*field.to);
        point(place, to);
      } else if (!field.scalar.empty()) {
        std::memcpy(&bytes[place], field.scalar.data(), field.scalar.size());
      }
    }
    return start;
  }

  size_t write_vector(const Node& node) {
    const size_t alignment = std::max<size_t>(node.item_bytes, 4);
    while ((bytes.size() + 4) % alignment != 0) bytes.push_back(0);
    const size_t start = bytes.size();
    put(node.count);
    if (node.tables.empty()) {
      bytes.insert(bytes.end(), node.items.begin(), node.items.end());
      return start;
    }
    bytes.resize(bytes.size() + 4 * node.tables.size());
    for (size_t i = 0; i < node.tables.size(); ++i) {
      const size_t to = write(*node.tables[i]);
      point(start + 4 + 4 * i, to);
    }
    return start;
  }
};

constexpr size_t kHeaderBytes = 32;
constexpr size_t kSegmentAlignment = 64;

}  // namespace

NodePtr table(std::initializer_list<Node::Field> fields) {
  auto node = std::make_shared<Node>();
  node->is_table = true;
  node->fields = fields;
  return node;
}

NodePtr tables(std::vector<NodePtr> items) {
  auto node = std::make_shared<Node>();
  node->item_bytes = 4;
  node->count = static_cast<uint32_t>(items.size());
  node->tables = std::move(items);
  return node;
}

NodePtr text(const std::string& chars) {
  std::vector<char> items(chars.begin(), chars.end());
  items.push_back('\0');  // not counted
  auto node = std::make_shared<Node>(*vector_of(items));
  node->count = static_cast<uint32_t>(chars.size());
  return node;
}

int32_t MethodFacts::value(uint8_t kind, NodePtr content) {
  values_.push_back(table({scalar(0, kind), child(1, std::move(content))}));
  return static_cast<int32_t>(values_.size()) - 1;
}

int32_t MethodFacts::tensor(const TensorFacts& facts) {
  std::vector<uint8_t> order = facts.order;
  if (order.empty()) {
    for (size_t i = 0; i < facts.sizes.size(); ++i) {
      order.push_back(static_cast<uint8_t>(i));
    }
  }
  NodePtr place;
  if (facts.memory_id >= 0) {
    place = table({scalar(0, static_cast<uint32_t>(facts.memory_id)),
                   scalar(1, facts.offset), scalar(2, facts.offset_high)});
  }
  NodePtr extra;
  if (facts.location != 0 || facts.mutable_segment != 0) {
    extra = table({scalar(0, facts.mutable_segment), child(1, text(facts.name)),
                   scalar(2, facts.location)});
  }
  return value(
      5,
      table({scalar(0, static_cast<int8_t>(facts.dtype)),
             scalar(1, facts.storage_offset), child(2, vector_of(facts.sizes)),
             child(3, vector_of(order)), scalar(5, facts.data_buffer),
             child(6, place), scalar(7, facts.layout),
             scalar(8, facts.dynamism), child(9, extra)}));
}

void MethodFacts::call(const std::string& op,
                       const std::vector<int32_t>& args) {
  const size_t dot = op.find('.');
  std::pair<std::string, std::string> op_name(op.substr(0, dot), "");
  if (dot != std::string::npos) op_name.second = op.substr(dot + 1);
  operators.push_back(op_name);
  const auto index = static_cast<int32_t>(operators.size()) - 1;
  instruction(1, table({scalar(0, index), child(1, vector_of(args))}));
}

void MethodFacts::instruction(uint8_t kind, NodePtr content) {
  instructions_.push_back(
      table({scalar(0, kind), child(1, std::move(content))}));
}

NodePtr node_of(const DelegateFacts& facts) {
  std::vector<NodePtr> settings;
  for (const auto& [key, value] : facts.settings) {
    settings.push_back(table({child(0, facts.has_keys ? text(key) : nullptr),
                              child(1, vector_of(value))}));
  }
  NodePtr place;
  if (facts.has_data) {
    place = table({scalar(0, facts.location), scalar(1, facts.index)});
  }
  return table({child(0, text(facts.backend)), child(1, place),
                child(2, tables(settings))});
}

NodePtr MethodFacts::node() const {
  std::vector<NodePtr> parts;
  for (const DelegateFacts& facts : delegates) parts.push_back(node_of(facts));
  std::vector<NodePtr> names;
  for (const auto& [base, overload] : operators) {
    names.push_back(table({child(0, text(base)), child(1, text(overload))}));
  }
  const NodePtr chain = table({child(2, tables(instructions_))});
  return table({child(0, text(name)), child(2, tables(values_)),
                child(3, vector_of(inputs)), child(4, vector_of(outputs)),
                child(5, tables(std::vector<NodePtr>(chains, chain))),
                child(6, tables(names)), child(7, tables(parts)),
                child(8, vector_of(arenas))});
}

Block ProgramFacts::file() const {
  std::vector<NodePtr> plans;
  for (const MethodFacts& method : methods) plans.push_back(method.node());
  const uint64_t size =
      segment_size < 0 ? data.size() : static_cast<uint64_t>(segment_size);
  const NodePtr segment = table({scalar(0, segment_offset), scalar(1, size)});
  NodePtr old;
  if (inline_constants != 0) {
    old = tables(std::vector<NodePtr>(inline_constants, table({})));
  }
  std::vector<NodePtr> blocks;
  for (const std::vector<uint8_t>& bytes : inline_data) {
    blocks.push_back(table({child(0, vector_of(bytes))}));
  }
  const NodePtr state =
      table({scalar<uint32_t>(0, 0), child(1, vector_of(mutable_state))});
  const NodePtr root =
      table({scalar(0, version), child(1, tables(plans)), child(2, old),
             child(3, tables(blocks)), child(4, tables({segment})),
             child(5, table({scalar(0, constant_segment),
                             child(1, vector_of(constants))})),
             child(6, mutable_state.empty() ? nullptr : tables({state}))});

  Writer writer;
  writer.put(uint32_t{0});
  for (const char c : {'E', 'T', '1', '2', 'e', 'h', '0', '0'}) writer.put(c);
  writer.bytes.resize(8 + kHeaderBytes);
  writer.point(0, writer.write(*root));
  const uint64_t program_bytes = writer.bytes.size();
  if (!data.empty()) writer.pad(kSegmentAlignment);
  const uint64_t base = data.empty() ? 0 : writer.bytes.size();
  const uint32_t header_bytes = kHeaderBytes;
  const uint64_t data_bytes = data.size();
  std::memcpy(&writer.bytes[12], &header_bytes, 4);
  std::memcpy(&writer.bytes[16], &program_bytes, 8);
  std::memcpy(&writer.bytes[24], &base, 8);
  std::memcpy(&writer.bytes[32], &data_bytes, 8);
  writer.bytes.insert(writer.bytes.end(), data.begin(), data.end());
  return {writer.bytes.data(), writer.bytes.size()};
}

}  // namespace orch::test
