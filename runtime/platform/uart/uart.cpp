// Files, console and exit over a UART, which is polled: no interrupts, no DMA.
// The device asks and the host answers, one frame at a time, so the host never
// sends what the device does not wait for. docs/runner-protocol.md has the
// frames.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../cycles.h"
#include "../host.h"
#include "orch/platform.h"
#include "orch_uart.h"

extern "C" {
// From the linker script.
extern uint8_t orch_stack_top[];
extern const uint8_t orch_build_id[];
[[noreturn]] __attribute__((used)) void orch_uart_exit(uint32_t code);
}

namespace orch {
namespace {

using uart::Port;

constexpr uint8_t kSync = 0xA5;
constexpr size_t kMostPayload = 512;
constexpr size_t kIdSize = 20;  // of SHA-1
/// Polls until an answer counts as lost: some 50 ms at 168 MHz, half a second
/// at 16 MHz.
constexpr uint32_t kPolls = 1U << 20;
constexpr int kTries = 100;

enum Kind : uint8_t {
  kHello = 'H',
  kRead = 'R',
  kWrite = 'W',
  kLog = 'L',
  kExit = 'X',
};

volatile uint32_t& at(uintptr_t address) {
  return *reinterpret_cast<volatile uint32_t*>(address);
}

bool is_ready(const Port& port) {
  return (at(port.status) & port.mask) == port.ready;
}

void put(uint8_t byte) {
  at(uart::kSend.data) = byte;
  while (!is_ready(uart::kSend)) {
  }
  if (uart::kSend.is_event) at(uart::kSend.status) = 0;
}

/// False: nothing came for a while.
bool get(uint8_t& byte) {
  for (uint32_t left = kPolls; left != 0; --left) {
    if (!is_ready(uart::kReceive)) continue;
    if (uart::kReceive.is_event) at(uart::kReceive.status) = 0;
    byte = static_cast<uint8_t>(at(uart::kReceive.data));
    return true;
  }
  return false;
}

/// CRC-32 of what is sent or received: with one of 16 bits, a wire that loses
/// bytes gets a wrong frame through in 65,536.
class Checked {
 public:
  void send(uint8_t byte) {
    add(byte);
    put(byte);
  }
  bool receive(uint8_t& byte) {
    if (!get(byte)) return false;
    add(byte);
    return true;
  }
  void send_sum() {
    for (int bits = 0; bits < 32; bits += 8) {
      put(static_cast<uint8_t>(~sum_ >> bits));
    }
  }
  bool receive_sum() {
    for (int bits = 0; bits < 32; bits += 8) {
      uint8_t byte;
      if (!get(byte) || byte != static_cast<uint8_t>(~sum_ >> bits)) {
        return false;
      }
    }
    return true;
  }

 private:
  void add(uint8_t byte) {
    sum_ ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      sum_ = sum_ >> 1 ^ ((sum_ & 1) != 0 ? 0xEDB88320U : 0);
    }
  }
  uint32_t sum_ = 0xFFFFFFFFU;
};

#if defined(__riscv)
[[noreturn]] void restart() {
  for (;;) {
  }
}
#else
// System control block of Cortex-M. Source: Armv6-M, Armv7-M and Armv8-M
// Architecture Reference Manuals.
[[noreturn]] void restart() {
  __asm__ volatile("dsb" ::: "memory");
  at(0xE000ED0CU) = 0x05FA0004U;  // AIRCR: SYSRESETREQ, with its key
  for (;;) {
  }
}
#endif

uint8_t sequence;

void send_frame(Kind kind, const uint8_t* payload, size_t size) {
  put(kSync);
  Checked line;
  line.send(kind);
  line.send(sequence);
  line.send(static_cast<uint8_t>(size));
  line.send(static_cast<uint8_t>(size >> 8));
  for (size_t i = 0; i < size; ++i) line.send(payload[i]);
  line.send_sum();
}

/// Payload of an answer whose head came: at most `capacity` bytes, which it
/// sets. False: it is damaged.
bool receive_payload(Checked& line, size_t size, uint8_t* payload,
                     size_t& capacity) {
  if (size > capacity) return false;
  for (size_t i = 0; i < size; ++i) {
    if (!line.receive(payload[i])) return false;
  }
  capacity = size;
  return line.receive_sum();
}

/// The answer to the last question; false: none comes, or a damaged one.
bool receive_frame(Kind kind, uint8_t* payload, size_t& capacity) {
  // What answers an earlier question that was asked twice is passed over.
  for (uint8_t byte; get(byte);) {
    if (byte != kSync) continue;
    Checked line;
    uint8_t head[4];
    for (uint8_t& one : head) {
      if (!line.receive(one)) return false;
    }
    if (head[0] != kind || head[1] != sequence) continue;
    const size_t size = static_cast<size_t>(head[2] | head[3] << 8);
    return receive_payload(line, size, payload, capacity);
  }
  return false;
}

/// Asks until there is an answer, at most `tries` times; 0: for ever.
bool ask(Kind kind, const uint8_t* payload, size_t size, uint8_t* answer,
         size_t& capacity, int tries) {
  ++sequence;
  const size_t most = capacity;
  for (int i = 0; tries == 0 || i < tries; ++i) {
    capacity = most;
    send_frame(kind, payload, size);
    if (receive_frame(kind, answer, capacity)) return true;
  }
  return false;
}

/// Sends what needs no answer but the acknowledgement.
bool send(Kind kind, const void* data, size_t size) {
  size_t none = 0;
  return ask(kind, static_cast<const uint8_t*>(data), size, nullptr, none,
             kTries);
}

/// Bytes that were read before they are needed, and written before they are
/// sent: most items are words.
struct Buffer {
  uint8_t bytes[64];
  size_t begin;
  size_t end;
};
Buffer came;
Buffer left;

/// At most `size` bytes of the request; 0 if there are no more.
size_t read_some(uint8_t* to, size_t size) {
  size_t count = size < kMostPayload ? size : kMostPayload;
  const uint8_t wish[] = {static_cast<uint8_t>(count),
                          static_cast<uint8_t>(count >> 8)};
  return ask(kRead, wish, sizeof wish, to, count, kTries) ? count : 0;
}

bool flush() {
  const size_t size = left.end;
  left.end = 0;
  return size == 0 || send(kWrite, left.bytes, size);
}

}  // namespace

namespace platform {

File open_for_reading(const char*) { return 0; }
File open_for_writing(const char*) { return 1; }

bool read(File, void* data, size_t size) {
  uint8_t* to = static_cast<uint8_t*>(data);
  while (size != 0) {
    if (came.begin == came.end && size < sizeof came.bytes) {
      came.begin = 0;
      came.end = read_some(came.bytes, sizeof came.bytes);
      if (came.end == 0) return false;
    }
    size_t count = came.end - came.begin;
    if (count != 0) {
      count = count < size ? count : size;
      memcpy(to, came.bytes + came.begin, count);
      came.begin += count;
    } else {
      count = read_some(to, size);
      if (count == 0) return false;
    }
    to += count;
    size -= count;
  }
  return true;
}

bool write(File, const void* data, size_t size) {
  const uint8_t* from = static_cast<const uint8_t*>(data);
  while (size != 0) {
    if (left.end == 0 && size >= sizeof left.bytes) {
      const size_t count = size < kMostPayload ? size : kMostPayload;
      if (!send(kWrite, from, count)) return false;
      from += count;
      size -= count;
      continue;
    }
    const size_t room = sizeof left.bytes - left.end;
    const size_t count = size < room ? size : room;
    memcpy(left.bytes + left.end, from, count);
    left.end += count;
    from += count;
    size -= count;
    if (left.end == sizeof left.bytes && !flush()) return false;
  }
  return true;
}

void close(File file) {
  if (file == 1) (void)flush();
}

void log(const char* text) {
  const size_t size = strlen(text);
  (void)send(kLog, text, size < kMostPayload ? size : kMostPayload);
}

}  // namespace platform

namespace host {

int run_application() {
  apply(uart::kSettings);
  size_t none = 0;
  (void)ask(kHello, orch_build_id, kIdSize, nullptr, none, 0);
  return orch_application("", "");
}

void exit(int code) {
  // From the top of the stack on: it may be what failed.
#if defined(__riscv)
  register int first __asm__("a0") = code;
  __asm__ volatile("mv sp, %1\n jr %2" ::"r"(first), "r"(orch_stack_top),
                   "r"(orch_uart_exit));
#else
  register int first __asm__("r0") = code;
  __asm__ volatile("mov sp, %1\n bx %2" ::"r"(first), "r"(orch_stack_top),
                   "r"(orch_uart_exit));
#endif
  __builtin_unreachable();
}

}  // namespace host
}  // namespace orch

extern "C" void orch_uart_exit(uint32_t code) {
  const uint8_t byte = static_cast<uint8_t>(code);
  (void)orch::send(orch::kExit, &byte, sizeof byte);
  orch::restart();
}
