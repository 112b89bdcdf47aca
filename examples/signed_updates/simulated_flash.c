#include "simulated_flash.h"

static uint8_t random_byte(simulated_flash* flash) {
  flash->random = flash->random * 1664525u + 1013904223u;
  return (uint8_t)(flash->random >> 24);
}

/* Bits of a byte that change in an operation: all, none, or, in one that is
 * cut, any of them; of some cuts none or all, as these are cases too. */
static uint8_t changing(simulated_flash* flash, bool is_cut, uint32_t kind) {
  if (!is_cut || kind == 0) return 0xff;
  return kind == 1 ? 0 : random_byte(flash);
}

/* Counts an operation; false if there is no power. */
static bool begin(simulated_flash* flash, bool* is_cut, uint32_t* kind) {
  if (flash->operations > flash->cut_at) return false;
  *is_cut = flash->operations++ == flash->cut_at;
  *kind = flash->random % 8;
  return true;
}

bool simulated_erase(const Flash* flash, uint32_t sector_at) {
  simulated_flash* const own = flash->context;
  bool is_cut;
  uint32_t kind;
  if (!begin(own, &is_cut, &kind)) return false;
  for (uint32_t i = 0; i < flash->sector_bytes; ++i) {
    uint8_t* const at = own->bytes + sector_at + i;
    *at = (uint8_t)(*at | changing(own, is_cut, kind));
  }
  return !is_cut;
}

bool simulated_program(const Flash* flash, uint32_t unit_at,
                       const uint8_t* bytes) {
  simulated_flash* const own = flash->context;
  bool is_cut;
  uint32_t kind;
  if (!begin(own, &is_cut, &kind)) return false;
  for (uint32_t i = 0; i < flash->unit_bytes; ++i) {
    uint8_t* const at = own->bytes + unit_at + i;
    if (*at != 0xff) own->broke_rules = true;
    *at = (uint8_t)(*at & (bytes[i] | (uint8_t)~changing(own, is_cut, kind)));
  }
  return !is_cut;
}
