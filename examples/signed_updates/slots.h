/* Two slots for updates, of which one is active, and a switch between them that
 * a loss of power cannot tear: before it the old update is active, after it the
 * new one.
 *
 * A slot is whole sectors. The last one has nothing but a record: size and
 * sequence number of the update, each with its complement. An update is stored
 * in the slot that is not active: its record is erased first and written last,
 * when everything else is there and was checked. A record that is torn differs
 * from its complement. The slot with the later record is active, if its update
 * is accepted; else the other one. */
#ifndef SLOTS_H_
#define SLOTS_H_

#include "flash.h"

/* Whether an update may be loaded: `<product>_<model>_check_update`. */
typedef bool (*accepts)(const void* update, uint32_t size, void* context);

typedef struct {
  const Flash* flash;
  uint32_t slot_bytes; /* of each; a multiple of the sector, at least two */
  accepts accepts;
  void* context; /* passed on to it */
} Slots;

typedef struct {
  const void* update; /* null: none, the linked model runs */
  uint32_t size;
} active_update;

active_update slots_active(const Slots* slots);

/* Stores an update and makes it active. False if it is too large or refused, or
 * if the flash fails: what was active still is. */
bool slots_store(const Slots* slots, const uint8_t* update, uint32_t size);

#endif
