// The device's end of a wire (runtime/platform/uart/uart.cpp) on a host, with
// registers that are functions, a wire that spoils bytes and a host that is
// written from docs/runner-protocol.md, or sends what it likes.
//
//     uart_device FIRST LAST
//
// gives each seed to it and prints what came of them. Sanitizers watch; a
// wrong answer ends the program. test_wire_device.py makes device.inc: the
// source with `at` and the number of polls as below.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device.inc"

using Bytes = std::vector<uint8_t>;

uint8_t orch_stack_top[1];
extern "C" const uint8_t orch_build_id[20] = {1, 2, 3};

namespace {

unsigned current;

[[noreturn]] void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::printf("seed %u: ", current);
  std::vprintf(format, values);
  std::printf("\n");
  std::exit(1);
}

struct Restart {};        // the device restarts the board
struct NeverAnswered {};  // it asks for ever whether the host is there

/// CRC-32 by long division of the whole message, unlike both ends.
uint32_t sum_of(const Bytes& text, size_t begin, size_t end) {
  Bytes bits;
  bits.reserve((end - begin + 4) * 8);
  for (size_t i = begin; i < end; ++i) {
    for (int b = 0; b < 8; ++b) bits.push_back(text[i] >> b & 1);
  }
  bits.resize(bits.size() + 32);
  for (size_t i = 0; i < 32; ++i) bits[i] ^= 1;
  for (size_t i = 0; i + 32 < bits.size(); ++i) {
    if (bits[i] == 0) continue;
    for (size_t power : {32, 26, 23, 22, 16, 12, 11, 10, 8, 7, 5, 4, 2, 1, 0}) {
      bits[i + 32 - power] ^= 1;
    }
  }
  uint32_t sum = 0;
  for (size_t i = 0; i < 32; ++i) {
    sum |= (bits[bits.size() - 32 + i] ^ 1U) << i;
  }
  return sum;
}

uint32_t word_at(const Bytes& text, size_t at) {
  return static_cast<uint32_t>(text[at] | text[at + 1] << 8 |
                               text[at + 2] << 16) |
         static_cast<uint32_t>(text[at + 3]) << 24;
}

Bytes frame(uint8_t kind, uint8_t sequence, const Bytes& payload, size_t size) {
  Bytes text{0xA5, kind, sequence, static_cast<uint8_t>(size),
             static_cast<uint8_t>(size >> 8)};
  text.insert(text.end(), payload.begin(), payload.end());
  const uint32_t sum = sum_of(text, 1, text.size());
  for (int b = 0; b < 32; b += 8) {
    text.push_back(static_cast<uint8_t>(sum >> b));
  }
  return text;
}

/// What happens to bytes, each with its chance in 65536.
struct Wire {
  unsigned flips, losses, doubles, inserts, swaps, pauses;
  unsigned byte_polls;   // how long one takes
  unsigned pause_polls;  // how long an answer may wait
  size_t fifo;           // how many the receiver keeps
  unsigned worst() const { return flips + losses + doubles + inserts + swaps; }
};

struct World {
  std::mt19937 random;
  Wire wire;
  bool is_hostile;
  unsigned long polls = 0;
  unsigned long most_polls;
  // Towards the device.
  struct Arrival {
    unsigned long when;
    uint8_t byte;
  };
  std::deque<Arrival> coming;
  std::deque<uint8_t> fifo;
  bool receive_event = false;
  bool send_event = false;
  unsigned long free_at = 0;
  // The host.
  Bytes request, response, log, from_device, answer;
  size_t given = 0;
  int last = -1;
  int exit_code = -1;
  unsigned long damaged = 0;

  bool chance(unsigned of_65536) { return random() % 65536 < of_65536; }
  uint8_t byte() { return static_cast<uint8_t>(random()); }

  Bytes spoiled(const Bytes& text) {
    Bytes out;
    for (uint8_t one : text) {
      if (chance(wire.losses)) continue;
      if (chance(wire.inserts)) out.push_back(byte());
      if (chance(wire.flips)) one = static_cast<uint8_t>(one ^ 1 << byte() % 8);
      out.push_back(one);
      if (chance(wire.doubles)) out.push_back(one);
      if (out.size() > 1 && chance(wire.swaps)) {
        std::swap(out.back(), out[out.size() - 2]);
      }
    }
    return out;
  }

  void to_device(const Bytes& text) {
    unsigned long when =
        std::max(polls, coming.empty() ? 0 : coming.back().when);
    if (chance(wire.pauses)) when += random() % (wire.pause_polls + 1);
    for (uint8_t one : spoiled(text)) {
      when += wire.byte_polls;
      if (chance(wire.pauses / 64)) when += random() % (wire.pause_polls / 4);
      coming.push_back({when, one});
    }
  }

  void pass_time() {
    if (++polls > most_polls) {
      if (orch::sequence == 1) throw NeverAnswered();
      fail("does not end%s", is_hostile ? " with a liar" : "");
    }
    while (!coming.empty() && polls >= coming.front().when) {
      if (fifo.size() == wire.fifo) fifo.pop_back();  // overrun
      fifo.push_back(coming.front().byte);
      coming.pop_front();
      receive_event = true;
    }
  }

  // The host takes each byte when it comes.
  void from_wire(uint8_t one) {
    for (uint8_t arrived : spoiled({one})) from_device.push_back(arrived);
    if (is_hostile) return answer_as_it_likes();
    size_t begin = 0;
    while (begin < from_device.size()) {
      if (from_device[begin] != 0xA5) {
        ++begin;
        continue;
      }
      const size_t left = from_device.size() - begin;
      if (left < 5) break;
      const uint8_t kind = from_device[begin + 1];
      const size_t size = static_cast<size_t>(from_device[begin + 3] |
                                              from_device[begin + 4] << 8);
      const bool known = kind == 'H'   ? size == 20
                         : kind == 'R' ? size == 2
                         : kind == 'X' ? size == 1
                                       : kind == 'W' || kind == 'L';
      if (known && size <= 512 && left < size + 9) break;
      if (known && size <= 512) {
        const size_t end = begin + 5 + size;
        if (sum_of(from_device, begin + 1, end) == word_at(from_device, end)) {
          answer_properly(
              kind, from_device[begin + 2],
              Bytes(from_device.begin() + static_cast<ptrdiff_t>(begin) + 5,
                    from_device.begin() + static_cast<ptrdiff_t>(end)));
          begin = end + 4;
          continue;
        }
      }
      ++damaged;
      ++begin;
    }
    from_device.erase(from_device.begin(),
                      from_device.begin() + static_cast<ptrdiff_t>(begin));
  }

  void answer_properly(uint8_t kind, uint8_t sequence, const Bytes& payload) {
    if (last != sequence) {
      if (last >= 0 && static_cast<uint8_t>(sequence - last) >= 128) return;
      Bytes found;
      if (kind == 'R') {
        const size_t wish = static_cast<size_t>(payload[0] | payload[1] << 8);
        if (wish == 0 || wish > 512) fail("asks for %zu bytes", wish);
        size_t count = std::min(wish, request.size() - given);
        // It may give fewer, but none only at the end.
        if (count > 1 && chance(9999)) count = 1 + random() % count;
        const auto at = request.begin() + static_cast<ptrdiff_t>(given);
        found.assign(at, at + static_cast<ptrdiff_t>(count));
        given += count;
      } else if (kind == 'W') {
        response.insert(response.end(), payload.begin(), payload.end());
      } else if (kind == 'L') {
        log.insert(log.end(), payload.begin(), payload.end());
      } else if (kind == 'X') {
        exit_code = payload[0];
      }
      answer = frame(kind, sequence, found, found.size());
      last = sequence;
    } else if (!coming.empty() && chance(50000)) {
      return;  // it reads both questions at once, and answers the last
    }
    to_device(answer);
  }

  /// Frames that are nearly right, replays, and noise, some of it endless.
  void answer_as_it_likes() {
    if (from_device.size() < 9) return;
    const uint8_t kind = from_device[1], sequence = from_device[2];
    if (random() % 4 == 0) from_device.clear();
    if (coming.size() > 3000 || random() % 8 != 0) return;
    Bytes payload(random() % (random() % 4 == 0 ? 700 : 70));
    for (uint8_t& one : payload) one = random() % 3 == 0 ? 0xA5 : byte();
    size_t size = payload.size();
    if (random() % 4 == 0) size = random() % 65536;
    if (random() % 4 == 0) payload.clear(), size = 0;
    to_device(frame(random() % 5 == 0 ? byte() : kind,
                    static_cast<uint8_t>(sequence - random() % 5 / 4), payload,
                    size));
  }
};

World* world;

constexpr uintptr_t kStatus = 0x10, kIn = 0x14, kOut = 0x18, kSent = 0x1C;
constexpr uintptr_t kReset = 0xE000ED0C;

}  // namespace

uint32_t Register::get() const {
  World& now = *world;
  switch (address) {
    case kStatus:
      now.pass_time();
      if (orch::uart::kReceive.is_event) return now.receive_event ? 1 : 0;
      return now.fifo.empty() ? 0x40U : 0x60U;
    case kSent:
      now.pass_time();
      if (now.polls >= now.free_at) now.send_event = true;
      if (orch::uart::kSend.is_event) return now.send_event ? 1 : 0;
      return now.polls >= now.free_at ? 0x80U : 0;
    case kIn: {
      if (now.fifo.empty()) return now.byte();
      const uint8_t byte = now.fifo.front();
      now.fifo.pop_front();
      if (!now.fifo.empty()) now.receive_event = true;
      return byte | 0xFFFFFF00U;  // other bits of the register are anything
    }
    default:
      return 0;
  }
}

void Register::set(uint32_t value) const {
  World& now = *world;
  if (address == kReset) throw Restart();
  if (address == kStatus) now.receive_event = false;
  if (address == kSent) now.send_event = false;
  if (address != kOut) return;
  if (now.polls < now.free_at) fail("sends while it is sending");
  now.free_at = now.polls + now.wire.byte_polls;
  now.from_wire(static_cast<uint8_t>(value));
}

namespace {

constexpr orch::uart::Port kPlainIn{kStatus, 0x20, 0x20, kIn, false};
constexpr orch::uart::Port kPlainOut{kSent, 0x80, 0x80, kOut, false};
constexpr orch::uart::Port kEventIn{kStatus, 1, 1, kIn, true};
constexpr orch::uart::Port kEventOut{kSent, 1, 1, kOut, true};

Bytes written, said;
size_t consumed;
bool could_not_read;

size_t some_size(std::mt19937& random) {
  constexpr size_t kSizes[] = {0, 1, 4, 8, 12, 63, 64, 65, 511, 512, 513};
  return random() % 2 == 0 ? kSizes[random() % std::size(kSizes)]
                           : random() % (random() % 4 == 0 ? 3000 : 90);
}

}  // namespace

/// Reads and writes what a runner may, in blocks of just their size.
int orch_application(const char*, const char*) {
  World& now = *world;
  using namespace orch::platform;
  for (unsigned left = now.random() % 30; left != 0; --left) {
    const size_t size = some_size(now.random);
    const std::unique_ptr<uint8_t[]> block(new uint8_t[size]);
    switch (now.random() % 5) {
      case 0:
      case 1:
        if (!read(0, block.get(), size)) {
          could_not_read = true;
          return 3;
        }
        if (!now.is_hostile &&
            (size > now.request.size() - consumed ||
             !std::equal(
                 block.get(), block.get() + size,
                 now.request.begin() + static_cast<ptrdiff_t>(consumed)))) {
          fail("read something else");
        }
        consumed += size;
        break;
      case 2: {
        const std::string text(size, 'x');
        log(text.c_str());
        said.insert(
            said.end(), text.begin(),
            text.begin() + std::min<ptrdiff_t>(text.end() - text.begin(), 512));
        break;
      }
      default:
        for (size_t i = 0; i < size; ++i) block[i] = now.byte();
        if (now.random() % 3 == 0) std::fill_n(block.get(), size, 0xA5);
        written.insert(written.end(), block.get(), block.get() + size);
        if (!write(1, block.get(), size)) return 4;
    }
  }
  close(0);
  close(1);
  return 0;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  unsigned long done = 0, refused = 0, hostile = 0, damaged = 0;
  const unsigned last = static_cast<unsigned>(std::atoi(arguments[2]));
  for (current = static_cast<unsigned>(std::atoi(arguments[1]));
       current <= last; ++current) {
    World now;
    world = &now;
    now.random.seed(current);
    auto& random = now.random;
    auto below = [&](unsigned end) {
      return static_cast<unsigned>(random() % end);
    };
    auto rate = [&](unsigned most) {
      return random() % 2 == 0 ? 0 : below(most + 1);
    };
    constexpr unsigned kMost[] = {0, 0, 60, 60, 60, 400, 2000};
    const unsigned most = kMost[below(std::size(kMost))];
    now.wire = {rate(most),
                rate(most),
                rate(most),
                rate(most),
                rate(most),
                rate(60000),
                4 + below(8),
                static_cast<unsigned>(kPolls * 2),
                random() % 2 == 0 ? 1U : 16U};
    const bool events = random() % 3 == 0;
    if (events) now.wire.fifo = 6;
    orch::uart::kReceive = events ? kEventIn : kPlainIn;
    orch::uart::kSend = events ? kEventOut : kPlainOut;
    now.is_hostile = random() % 4 == 0;
    now.most_polls = 20'000'000;
    now.request.resize(some_size(random) * (random() % 4 == 0 ? 1 : 20));
    for (uint8_t& one : now.request)
      one = random() % 5 == 0 ? 0xA5 : now.byte();
    orch::came = {};
    orch::left = {};
    orch::sequence = 0;
    written.clear();
    said.clear();
    consumed = 0;
    could_not_read = false;
    int code = -1;
    try {
      code = orch::host::run_application();
      orch_uart_exit(static_cast<uint32_t>(code));
    } catch (Restart) {
    } catch (NeverAnswered) {
    }
    damaged += now.damaged;
    if (now.is_hostile) {
      ++hostile;
      continue;
    }
    if (now.response.size() > written.size() ||
        !std::equal(now.response.begin(), now.response.end(),
                    written.begin())) {
      fail("the host has another response");
    }
    if (now.exit_code != -1 && now.exit_code != code) fail("another exit code");
    const bool is_whole = now.response.size() == written.size();
    if (code == 0 && now.exit_code == 0 && is_whole) {
      if (now.wire.worst() <= kReliable && now.log != said) fail("lost text");
      ++done;
      continue;
    }
    ++refused;
    const bool at_end = could_not_read && now.given == now.request.size();
    if (now.wire.worst() <= kReliable && !(at_end && now.exit_code == 3)) {
      fail("gave up on a good wire: code %d, host %d, %u of 65536", code,
           now.exit_code, now.wire.worst());
    }
  }
  std::printf("%lu done, %lu refused, %lu hostile, %lu damaged frames\n", done,
              refused, hostile, damaged);
  return 0;
}
