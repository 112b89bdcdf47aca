/* Stores an update over another one, and takes the power at every write and
 * every erase; then again while the update is stored a second time. After each
 * loss the device has to start with the old update or the new one.
 *
 *   power_loss KEY OLD NEW UNIT SECTOR
 *
 * KEY is the public key as `trust_init` takes it, OLD and NEW are updates; UNIT
 * and SECTOR are those of the flash, in bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adder.h"
#include "simulated_flash.h"
#include "slots.h"
#include "trust.h"

#define MOST_BYTES 65536
#define CUTS_OF_ONE 8 /* each with other bits */

typedef struct {
  uint8_t* bytes;
  uint32_t size;
} file;

static orch_update_trust trust;
static file old_update, new_update;
static uint32_t old_count, new_count, losses;
/* The lowest version that is accepted. On a device: a counter that cannot go
 * back, in memory that no update is written to. */
static uint32_t lowest;

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static file read_whole(const char* path) {
  file found = {aligned_alloc(16, MOST_BYTES), 0};
  FILE* const from = fopen(path, "rb");
  if (from == NULL || found.bytes == NULL) fail("cannot read a file");
  found.size = (uint32_t)fread(found.bytes, 1, MOST_BYTES, from);
  fclose(from);
  return found;
}

static bool accepts_update(const void* update, uint32_t size, void* context) {
  (void)context;
  return adder_add_mul_check_update(update, size, lowest, &trust) ==
         ORCH_UPDATE_OK;
}

static bool is_same(active_update found, file wanted) {
  return found.update != NULL && found.size == wanted.size &&
         memcmp(found.update, wanted.bytes, wanted.size) == 0;
}

/* What a device does when it starts; whether the new update runs. */
static bool start(const Slots* slots) {
  const active_update found = slots_active(slots);
  const bool is_new = is_same(found, new_update);
  if (!is_new && !is_same(found, old_update))
    fail("neither the old nor the new");
  if (adder_add_mul_load_update(found.update, found.size, lowest, &trust) !=
      ORCH_UPDATE_OK) {
    fail("the active update is not loaded");
  }
  /* It runs: nothing older will from now on. */
  const uint32_t version = orch_update_version(found.update);
  if (version > lowest) lowest = version;
  if (is_new) {
    ++new_count;
  } else {
    ++old_count;
  }
  return is_new;
}

/* Stores the new update, with a loss of power; whether there was one. */
static bool store_and_lose(const Slots* slots, simulated_flash* own,
                           uint32_t cut_at, uint32_t seed) {
  own->operations = 0;
  own->cut_at = cut_at;
  own->random = seed;
  const bool stored = slots_store(slots, new_update.bytes, new_update.size);
  const bool lost = own->operations > cut_at;
  own->cut_at = NEVER_CUT;
  if (stored == lost) fail("stored without power, or not with it");
  losses += lost;
  return lost;
}

int main(int count, char** arguments) {
  if (count != 6) fail("power_loss KEY OLD NEW UNIT SECTOR");
  const file key = read_whole(arguments[1]);
  old_update = read_whole(arguments[2]);
  new_update = read_whole(arguments[3]);
  if (!trust_init(&trust, key.bytes, key.size)) fail("the key is wrong");

  simulated_flash own = {aligned_alloc(16, 2 * MOST_BYTES), 0, NEVER_CUT, 0,
                         false};
  Flash flash = {own.bytes, 0, 0, simulated_erase, simulated_program, &own};
  flash.unit_bytes = (uint32_t)strtoul(arguments[4], NULL, 10);
  flash.sector_bytes = (uint32_t)strtoul(arguments[5], NULL, 10);
  Slots slots = {&flash, 2 * flash.sector_bytes, accepts_update, NULL};
  while (slots.slot_bytes - flash.sector_bytes < new_update.size) {
    slots.slot_bytes += flash.sector_bytes;
  }
  if (slots.slot_bytes > MOST_BYTES) fail("the update is too large");
  /* A flash that is not empty, so that nothing depends on that. */
  memset(own.bytes, 0x55, 2 * MOST_BYTES);
  if (!slots_store(&slots, old_update.bytes, old_update.size)) {
    fail("the first update is refused");
  }
  uint8_t* const before = malloc(2 * MOST_BYTES);
  memcpy(before, own.bytes, 2 * MOST_BYTES);

  bool lost = true;
  for (uint32_t cut = 0; lost; ++cut) {
    for (uint32_t seed = 0; seed < CUTS_OF_ONE; ++seed) {
      memcpy(own.bytes, before, 2 * MOST_BYTES);
      lowest = 0; /* another device, before its first update */
      lost = store_and_lose(&slots, &own, cut, seed);
      const bool is_new = start(&slots);
      if (!lost && !is_new) fail("stored, and not active");
      /* The same again, and the power goes once more. */
      (void)store_and_lose(&slots, &own, (cut * 7 + seed) % (cut + 1),
                           seed + 1);
      if (is_new && !start(&slots)) fail("back to the old one");
      if (store_and_lose(&slots, &own, NEVER_CUT, 0) || !start(&slots)) {
        fail("it cannot be stored any more");
      }
      if (slots_store(&slots, old_update.bytes, old_update.size) ||
          !start(&slots)) {
        fail("an older update is accepted");
      }
    }
  }
  /* Someone writes the flash of before. */
  memcpy(own.bytes, before, 2 * MOST_BYTES);
  if (slots_active(&slots).update != NULL) fail("an older update is active");
  if (own.broke_rules) fail("a unit was programmed that was not erased");
  printf(
      "%u losses of power: %u starts with the old update, %u with the new one,"
      " none with neither\n",
      (unsigned)losses, (unsigned)old_count, (unsigned)new_count);
  return 0;
}
