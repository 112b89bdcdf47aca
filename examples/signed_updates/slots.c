#include "slots.h"

#include <string.h>

#define RECORD_BYTES 16
#define MOST_UNIT_BYTES 256

typedef struct {
  uint32_t size;
  uint32_t sequence; /* 0: there is no record */
} record;

static uint32_t start_of(const Slots* slots, int slot) {
  return slot == 0 ? 0 : slots->slot_bytes;
}

static uint32_t room_in(const Slots* slots) {
  return slots->slot_bytes - slots->flash->sector_bytes;
}

static record record_in(const Slots* slots, int slot) {
  const record none = {0, 0};
  uint32_t words[4];
  memcpy(words, slots->flash->memory + start_of(slots, slot) + room_in(slots),
         sizeof words);
  const record found = {words[0], words[2]};
  if (words[1] != ~words[0] || words[3] != ~words[2]) return none;
  return found.size <= room_in(slots) ? found : none;
}

/* The slot that is active; -1: none. */
static int active_slot(const Slots* slots) {
  record records[2];
  for (int i = 0; i < 2; ++i) records[i] = record_in(slots, i);
  const int later = records[1].sequence > records[0].sequence ? 1 : 0;
  for (int i = 0; i < 2; ++i) {
    const int slot = i == 0 ? later : 1 - later;
    const uint8_t* const at = slots->flash->memory + start_of(slots, slot);
    if (records[slot].sequence != 0 &&
        slots->accepts(at, records[slot].size, slots->context)) {
      return slot;
    }
  }
  return -1;
}

active_update slots_active(const Slots* slots) {
  active_update found = {0, 0};
  const int slot = active_slot(slots);
  if (slot >= 0) {
    found.update = slots->flash->memory + start_of(slots, slot);
    found.size = record_in(slots, slot).size;
  }
  return found;
}

/* Programs bytes into erased flash; the rest of the last unit stays erased. */
static bool program(const Flash* flash, uint32_t at, const void* from,
                    uint32_t count) {
  uint8_t unit[MOST_UNIT_BYTES];
  const uint8_t* bytes = from;
  while (count != 0) {
    const uint32_t part = count < flash->unit_bytes ? count : flash->unit_bytes;
    memset(unit, 0xff, sizeof unit);
    memcpy(unit, bytes, part);
    if (!flash->program(flash, at, unit)) return false;
    at += flash->unit_bytes;
    bytes += part;
    count -= part;
  }
  return true;
}

bool slots_store(const Slots* slots, const uint8_t* update, uint32_t size) {
  const Flash* const flash = slots->flash;
  if (size > room_in(slots) || flash->unit_bytes > MOST_UNIT_BYTES)
    return false;
  const int active = active_slot(slots);
  const int slot = active == 0 ? 1 : 0;
  const uint32_t start = start_of(slots, slot);
  const uint32_t record_at = start + room_in(slots);
  /* From here on, this slot has no record. */
  if (!flash->erase(flash, record_at)) return false;
  for (uint32_t at = 0; at < room_in(slots); at += flash->sector_bytes) {
    if (!flash->erase(flash, start + at)) return false;
  }
  if (!program(flash, start, update, size)) return false;
  if (!slots->accepts(flash->memory + start, size, slots->context)) {
    return false;
  }
  const uint32_t sequence =
      active < 0 ? 1 : record_in(slots, active).sequence + 1;
  const uint32_t words[4] = {size, ~size, sequence, ~sequence};
  return program(flash, record_at, words, sizeof words);
}
