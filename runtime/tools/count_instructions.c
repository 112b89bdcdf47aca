/* QEMU TCG plugin: counts the instructions a guest executes, exactly.
 *
 * qemu-system-arm ... -plugin ./count_instructions.so,ARGUMENTS
 *
 *   function=ADDRESS            count each call of this function, entry to
 * return executor=ADDRESS,bytes=N    orch::execute and its size
 *   steps=ADDRESS,bytes=N       a part of it: orch::execute_steps, make_step
 *   table=ADDRESS,stride=N,count=N
 *                               instructions of a method in memory; any number
 *   events=FILE                 also count kinds of instructions
 *   out=FILE
 *
 * Nothing is added to the guest: it runs the code that ships. A call is seen by
 * the block that begins at the function, and its return by the block that
 * begins where the block before had ended. Which instruction of a method is
 * carried out is seen by what the executor reads: the first word it takes from
 * entry I of a table begins instruction I, the first from another entry, or the
 * return, ends it. What is executed in between outside of the executor's own
 * code is the kernel's.
 *
 * The file of `out` gets, with decimal numbers,
 *
 *   call FUNCTION COUNT         a call of a function, by its position
 *   run COUNT                   a call of the executor
 *   instruction TABLE INDEX CALLS COUNT
 *   total COUNT                 everything, start-up code included
 *
 * With `events` each COUNT is followed by one number per event: kinds of
 * instructions, whose sum is COUNT, then the four of `enum more`. That file
 * has, as words of 32 bits, the number of kinds, those of loads and of ends of
 * loops; then pieces of code: address, number of halfwords, two bytes for each
 * halfword. The first is the kind of the instruction that begins there, the
 * second has the flags of `enum flag` and how many registers it loads or stores
 * after the first.
 *
 * Debian ships no qemu-plugin.h. The declarations below are written after
 * QEMU's documentation of TCG plugins (docs/devel/tcg-plugins, API version 1).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct qemu_info_t qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*tb_trans_cb)(qemu_plugin_id_t, struct qemu_plugin_tb*);
typedef void (*vcpu_cb)(unsigned int, void*);
typedef void (*mem_cb)(unsigned int, qemu_plugin_meminfo_t, uint64_t, void*);
typedef void (*exit_cb)(qemu_plugin_id_t, void*);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                                  tb_trans_cb);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb*,
                                                 vcpu_cb,
                                                 enum qemu_plugin_cb_flags,
                                                 void*);
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn*,
                                                       enum qemu_plugin_op,
                                                       void*, uint64_t);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*, mem_cb,
                                             enum qemu_plugin_cb_flags,
                                             enum qemu_plugin_mem_rw, void*);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, exit_cb, void*);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(
    const struct qemu_plugin_tb*, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn*);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { kMaxSteps = 2, kMaxFunctions = 64, kMaxTables = 256 };
enum { kMaxPieces = 16, kMaxEvents = 32 };

/* What is counted beside kinds of instructions. */
enum more { kMoreRegisters, kNeighbour, kOverlap, kTaken, kMoreEvents };
enum flag { kMoreMask = 0x3F, kVector = 0x40, kOneAccess = 0x80 };

/* Counts by event; without the file `events` all instructions are of kind 0. */
struct counts {
  uint64_t of[kMaxEvents];
};

/* A function whose calls are counted; one call within another is part of it. */
struct function {
  uint64_t address, return_to;
  struct counts started_with;
  bool is_open;
};

/* Instructions of a method: `count` entries of `stride` bytes. */
struct table {
  uint64_t base, stride, count;
  uint64_t* calls;
  struct counts* executed;
};

/* A block of guest code that is executed from its begin to its end. */
struct block {
  uint64_t begin, end;
  uint64_t* taken; /* counts a branch at its end; NULL for the end of a loop */
  uint8_t first[2], last[2]; /* kinds of these instructions */
  uint64_t* more; /* counts what the first one adds; NULL without events */
};

/* Code whose kinds of instructions are known. */
struct piece {
  uint32_t begin, halfwords;
  uint8_t* kinds;
};

static struct function functions[kMaxFunctions];
static size_t function_count;
static struct function executor;
static uint64_t executor_bytes;
static uint64_t steps_address[kMaxSteps], steps_bytes[kMaxSteps];
static size_t steps_count;
static struct table tables[kMaxTables];
static size_t table_count;

static struct piece pieces[kMaxPieces];
static size_t piece_count;
static uint32_t kinds = 1, load, loop_end;
static size_t events = 1; /* kinds, and more events if kinds are known */

static struct counts outside;    /* of the executor's own code */
static struct counts inside;     /* in it */
static const struct block* last; /* the block before */

static struct counts*
    current; /* where the instruction of the method is counted */
static struct counts current_started_with;

static FILE* out;

static struct counts everything(void) {
  struct counts sum = {{0}};
  for (size_t e = 0; e < events; ++e) sum.of[e] = outside.of[e] + inside.of[e];
  return sum;
}

static void subtract(struct counts* from, const struct counts* counts) {
  for (size_t e = 0; e < events; ++e) from->of[e] -= counts->of[e];
}

static void print_counts(const struct counts* counts) {
  uint64_t sum = 0;
  for (size_t kind = 0; kind < kinds; ++kind) sum += counts->of[kind];
  fprintf(out, " %" PRIu64, sum);
  for (size_t e = 0; events != 1 && e < events; ++e) {
    fprintf(out, " %" PRIu64, counts->of[e]);
  }
  fputc('\n', out);
}

static void print_since(const struct counts* start) {
  struct counts counts = everything();
  subtract(&counts, start);
  print_counts(&counts);
}

static void end_instruction(void) {
  for (size_t e = 0; current != NULL && e < events; ++e) {
    current->of[e] += outside.of[e] - current_started_with.of[e];
  }
  current = NULL;
  current_started_with = outside;
}

static void enter(struct function* function) {
  if (function->is_open) return;
  function->is_open = true;
  function->return_to = last != NULL ? last->end : 0;
  function->started_with = everything();
}

static bool leave(struct function* function, uint64_t at) {
  if (!function->is_open || at != function->return_to) return false;
  function->is_open = false;
  return true;
}

/* What an instruction adds as it follows another. */
static bool is_neighbour(const uint8_t* before, const uint8_t* kind) {
  return (before[1] & kind[1] & kOneAccess) != 0 && kind[0] == load;
}

static bool overlaps(const uint8_t* before, const uint8_t* kind) {
  return (before[1] & kind[1] & kVector) != 0 && kind[0] != before[0];
}

static void on_block(unsigned int cpu, void* data) {
  (void)cpu;
  const struct block* block = data;
  if (last != NULL && block->begin != last->end) {
    if (last->taken != NULL) ++*last->taken;
  } else if (last != NULL && block->more != NULL) {
    /* A block also ends where a page of the emulator does, with the code going
     * on. */
    block->more[kNeighbour] += is_neighbour(last->last, block->first);
    block->more[kOverlap] += overlaps(last->last, block->first);
  }
  for (size_t i = 0; i < function_count; ++i) {
    struct function* function = &functions[i];
    if (leave(function, block->begin)) {
      fprintf(out, "call %zu", i);
      print_since(&function->started_with);
    }
    if (block->begin == function->address) enter(function);
  }
  if (leave(&executor, block->begin)) {
    end_instruction();
    fputs("run", out);
    print_since(&executor.started_with);
  }
  if (executor_bytes != 0 && block->begin == executor.address) enter(&executor);
  last = block;
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t at,
                      void* data) {
  (void)cpu;
  (void)info;
  (void)data;
  for (size_t t = 0; t < table_count; ++t) {
    struct table* table = &tables[t];
    if (at < table->base || at - table->base >= table->stride * table->count)
      continue;
    const uint64_t index = (at - table->base) / table->stride;
    if (current == &table->executed[index]) return;
    end_instruction();
    current = &table->executed[index];
    ++table->calls[index];
    return;
  }
}

static void count(struct qemu_plugin_insn* insn, uint64_t* where, uint64_t by) {
  if (by == 0) return;
  qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                             where, by);
}

/* Two bytes for the instruction at an address; zeros where nothing is known. */
static const uint8_t* kind_at(uint64_t at) {
  static const uint8_t unknown[2];
  for (size_t i = 0; i < piece_count; ++i) {
    const struct piece* piece = &pieces[i];
    if (at >= piece->begin && (at - piece->begin) / 2 < piece->halfwords) {
      return &piece->kinds[(at - piece->begin) / 2 * 2];
    }
  }
  return unknown;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  const size_t size = qemu_plugin_tb_n_insns(tb);
  if (size == 0) return;
  /* Lives as long as the guest: QEMU does not say when it drops a translation.
   */
  struct block* block = malloc(sizeof *block);
  if (block == NULL) abort();
  const struct qemu_plugin_insn* end = qemu_plugin_tb_get_insn(tb, size - 1);
  block->begin = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
  block->end = qemu_plugin_insn_vaddr(end) + qemu_plugin_insn_size(end);
  block->taken = block->more = NULL;
  memcpy(block->first, kind_at(block->begin), sizeof block->first);
  qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS,
                                       block);
  uint8_t before[2] = {0, 0};
  for (size_t i = 0; i < size; ++i) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    const uint64_t at = qemu_plugin_insn_vaddr(insn);
    bool is_inside = at - executor.address < executor_bytes;
    for (size_t s = 0; s < steps_count; ++s) {
      is_inside |= at - steps_address[s] < steps_bytes[s];
    }
    uint64_t* counts = is_inside ? inside.of : outside.of;
    const uint8_t* kind = kind_at(at);
    count(insn, &counts[kind[0]], 1);
    if (events != 1) {
      uint64_t* more = counts + kinds;
      count(insn, &more[kMoreRegisters], kind[1] & kMoreMask);
      count(insn, &more[kNeighbour], is_neighbour(before, kind));
      count(insn, &more[kOverlap], overlaps(before, kind));
      if (i == 0) block->more = more;
      block->taken = kind[0] == loop_end ? NULL : &more[kTaken];
    }
    memcpy(before, kind, sizeof before);
    memcpy(block->last, kind, sizeof block->last);
    if (!is_inside) continue;
    /* Reads and writes: QEMU 7.2 mistakes one for the other if asked for reads
     * only, and the executor writes to no instruction. */
    qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
                                     QEMU_PLUGIN_MEM_RW, NULL);
  }
}

static void on_exit_(qemu_plugin_id_t id, void* data) {
  (void)id;
  (void)data;
  for (size_t t = 0; t < table_count; ++t) {
    for (uint64_t i = 0; i < tables[t].count; ++i) {
      if (tables[t].calls[i] == 0) continue;
      fprintf(out, "instruction %zu %" PRIu64 " %" PRIu64, t, i,
              tables[t].calls[i]);
      print_counts(&tables[t].executed[i]);
    }
  }
  const struct counts all = everything();
  fputs("total", out);
  print_counts(&all);
  fclose(out);
}

static bool read_words(FILE* file, uint32_t* words, size_t number) {
  return fread(words, sizeof *words, number, file) == number;
}

static bool read_events(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return false;
  uint32_t head[3], of_piece[2];
  bool is_good =
      read_words(file, head, 3) && head[0] + kMoreEvents <= kMaxEvents;
  while (is_good && read_words(file, of_piece, 2)) {
    struct piece* piece = &pieces[piece_count++];
    piece->begin = of_piece[0];
    piece->halfwords = of_piece[1];
    piece->kinds = malloc((size_t)of_piece[1] * 2 + 1);
    is_good = piece_count < kMaxPieces && piece->kinds != NULL &&
              fread(piece->kinds, 2, of_piece[1], file) == of_piece[1];
    for (size_t i = 0; is_good && i < of_piece[1]; ++i) {
      is_good = piece->kinds[2 * i] < head[0];
    }
  }
  fclose(file);
  if (!is_good) return false;
  kinds = head[0];
  load = head[1];
  loop_end = head[2];
  events = kinds + kMoreEvents;
  return true;
}

static bool is_key(const char* argument, const char* key, uint64_t* value) {
  const size_t length = strlen(key);
  if (strncmp(argument, key, length) != 0 || argument[length] != '=')
    return false;
  *value = strtoull(argument + length + 1, NULL, 0);
  return true;
}

__attribute__((visibility("default"))) int qemu_plugin_install(
    qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
  (void)info;
  const char* path = NULL;
  for (int i = 0; i < argc; ++i) {
    uint64_t value;
    struct table* table = table_count != 0 ? &tables[table_count - 1] : NULL;
    if (strncmp(argv[i], "out=", 4) == 0) {
      path = argv[i] + 4;
    } else if (strncmp(argv[i], "events=", 7) == 0) {
      if (!read_events(argv[i] + 7)) return 1;
    } else if (is_key(argv[i], "function", &value) &&
               function_count < kMaxFunctions) {
      functions[function_count++].address = value;
    } else if (is_key(argv[i], "executor", &value)) {
      executor.address = value;
    } else if (is_key(argv[i], "steps", &value) && steps_count < kMaxSteps) {
      steps_address[steps_count++] = value;
    } else if (is_key(argv[i], "bytes", &value)) {
      *(steps_count != 0 ? &steps_bytes[steps_count - 1] : &executor_bytes) =
          value;
    } else if (is_key(argv[i], "table", &value) && table_count < kMaxTables) {
      tables[table_count++].base = value;
    } else if (is_key(argv[i], "stride", &value) && table != NULL &&
               value != 0) {
      table->stride = value;
    } else if (is_key(argv[i], "count", &value) && table != NULL) {
      table->count = value;
      table->calls = calloc(value + 1, sizeof *table->calls);
      table->executed = calloc(value + 1, sizeof *table->executed);
      if (table->calls == NULL || table->executed == NULL) return 1;
    } else {
      fprintf(stderr, "count_instructions: argument %s\n", argv[i]);
      return 1;
    }
  }
  out = path != NULL ? fopen(path, "w") : NULL;
  if (out == NULL) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
  qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
  return 0;
}
