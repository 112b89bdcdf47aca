// Writes `.pte` programs for tests of the loader, fact by fact, so that a test
// can say what is wrong with one.
//
// Source: ExecuTorch schema/program.fbs and extended_header.h (ET12);
// FlatBuffers internals, https://flatbuffers.dev/internals/
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "orch/scalar_type.h"
#include "support/method_blocks.h"

namespace orch::test {

/// A part of a flatbuffer: a table, or a vector.
struct Node {
  struct Field {
    uint32_t slot;
    std::vector<uint8_t> scalar;     // or
    std::shared_ptr<const Node> to;  // an offset, if not null
  };
  bool is_table = false;
  std::vector<Field> fields;                        // of a table
  uint32_t item_bytes = 1;                          // of a vector
  uint32_t count = 0;                               // of a vector
  std::vector<uint8_t> items;                       // of a vector of scalars
  std::vector<std::shared_ptr<const Node>> tables;  // of a vector of tables
};
using NodePtr = std::shared_ptr<const Node>;

template <typename T>
std::vector<uint8_t> bytes_of(T value) {
  std::vector<uint8_t> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// A scalar field.
template <typename T>
Node::Field scalar(uint32_t slot, T value) {
  return {slot, bytes_of(value), nullptr};
}
/// A table or vector field; nothing at all for a null `to`.
inline Node::Field child(uint32_t slot, NodePtr to) {
  return {slot, {}, std::move(to)};
}

NodePtr table(std::initializer_list<Node::Field> fields);
NodePtr tables(std::vector<NodePtr> items);
NodePtr text(const std::string& chars);
template <typename T>
NodePtr vector_of(const std::vector<T>& items) {
  auto node = std::make_shared<Node>();
  node->item_bytes = sizeof(T);
  node->count = static_cast<uint32_t>(items.size());
  node->items.resize(items.size() * sizeof(T));
  if (!items.empty()) {
    std::memcpy(node->items.data(), items.data(), node->items.size());
  }
  return node;
}

/// A tensor value as the program says it.
struct TensorFacts {
  std::vector<int32_t> sizes;
  std::vector<uint8_t> order = {};  // empty: 0, 1, 2, ...
  ScalarType dtype = ScalarType::Float;
  int8_t dynamism = 0;
  uint32_t data_buffer = 0;
  /// Place in an arena; a negative id: none.
  int64_t memory_id = -1;
  uint32_t offset = 0;
  uint32_t offset_high = 0;
  // What no program of ours may have.
  int32_t storage_offset = 0;
  int8_t layout = 0;
  int8_t location = 0;           // 1: outside of the program
  uint64_t mutable_segment = 0;  // index
  std::string name = {};
};

/// A delegate as the program says it.
struct DelegateFacts {
  std::string backend;
  int8_t location = 0;  // 0: inline data, 1: a segment
  uint32_t index = 0;
  std::vector<std::pair<std::string, std::vector<uint8_t>>> settings = {};
  bool has_data = true;
  bool has_keys = true;
};

/// One method. Each function that adds a value returns its index.
class MethodFacts {
 public:
  explicit MethodFacts(std::string method_name = "forward")
      : name(std::move(method_name)) {}

  int32_t none() { return value(1, table({})); }
  int32_t integer(int64_t number) {
    return value(2, table({scalar(0, number)}));
  }
  int32_t boolean(bool flag) {
    return value(3, table({scalar<uint8_t>(0, flag)}));
  }
  int32_t number(double number) { return value(4, table({scalar(0, number)})); }
  int32_t tensor(const TensorFacts& facts);
  int32_t string(const std::string& chars) {
    return value(6, table({child(0, text(chars))}));
  }
  /// Items are indices of Int values.
  int32_t ints(const std::vector<int64_t>& items) { return list(7, items); }
  int32_t numbers(const std::vector<double>& items) { return list(8, items); }
  int32_t flags(const std::vector<uint8_t>& items) { return list(9, items); }
  /// Items are indices of tensors.
  int32_t tensor_list(const std::vector<int32_t>& items) {
    return list(10, items);
  }
  /// Items are indices of tensors or None; -1 is None as well.
  int32_t optional_tensors(const std::vector<int32_t>& items) {
    return list(11, items);
  }
  /// A value of any kind with any content.
  int32_t value(uint8_t kind, NodePtr content);

  /// Calls "namespace::base.overload".
  void call(const std::string& op, const std::vector<int32_t>& args);
  void delegate() { instruction(2, table({scalar<int32_t>(0, 0)})); }
  /// Calls one of `delegates`.
  void delegate(int32_t index, const std::vector<int32_t>& args) {
    instruction(2, table({scalar(0, index), child(1, vector_of(args))}));
  }
  void move(int32_t from, int32_t to) { pair(3, from, to); }
  void jump_unless(int32_t condition, int32_t destination) {
    pair(4, condition, destination);
  }
  void free(int32_t value) { instruction(5, table({scalar(0, value)})); }
  void instruction(uint8_t kind, NodePtr content);

  std::string name;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int64_t> arenas = {0};  // entry 0 is reserved
  uint32_t chains = 1;
  /// Operators by name and overload; `call` adds to them.
  std::vector<std::pair<std::string, std::string>> operators;
  std::vector<DelegateFacts> delegates;

  NodePtr node() const;

 private:
  template <typename T>
  int32_t list(uint8_t kind, const std::vector<T>& items) {
    return value(kind, table({child(0, vector_of(items))}));
  }
  void pair(uint8_t kind, int32_t first, int32_t second) {
    instruction(kind, table({scalar(0, first), scalar(1, second)}));
  }

  std::vector<NodePtr> values_;
  std::vector<NodePtr> instructions_;
};

/// A file with one segment.
struct ProgramFacts {
  std::vector<MethodFacts> methods = {};
  /// Bytes of the segment, and where data begins in it, entry 0 reserved.
  std::vector<uint8_t> data = {};
  std::vector<uint64_t> constants = {};
  std::vector<uint64_t> mutable_state = {};
  /// Bytes for delegates, inside the flatbuffer.
  std::vector<std::vector<uint8_t>> inline_data = {};
  uint32_t version = 0;
  uint32_t constant_segment = 0;
  uint32_t inline_constants = 0;  // entries of the old constant buffer
  uint64_t segment_offset = 0;
  int64_t segment_size = -1;  // -1: all of `data`

  /// The bytes of the file, in a block of their own.
  Block file() const;
};

}  // namespace orch::test
