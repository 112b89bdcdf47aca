/* QEMU TCG plugin: counts the instructions a guest executes, exactly.
 *
 * qemu-system-arm ... -plugin ./count_instructions.so,ARGUMENTS
 *
 *   function=ADDRESS            count each call of this function, entry to return
 *   executor=ADDRESS,bytes=N    orch::execute and its size
 *   table=ADDRESS,stride=N,count=N
 *                               instructions of a method in memory; any number
 *   out=FILE
 *
 * Nothing is added to the guest: it runs the code that ships. A call is seen by the
 * block that begins at the function, and its return by the block that begins where the
 * block before had ended. Which instruction of a method is carried out is seen by what
 * the executor reads: the first word it takes from entry I of a table begins
 * instruction I, the first from another entry, or the return, ends it. What is executed
 * in between outside of the executor's own code is the kernel's.
 *
 * FILE gets, with decimal numbers,
 *
 *   call FUNCTION COUNT         a call of a function, by its position
 *   run COUNT                   a call of the executor
 *   instruction TABLE INDEX CALLS COUNT
 *   total COUNT                 everything, start-up code included
 *
 * Debian ships no qemu-plugin.h. The declarations below are written after QEMU's
 * documentation of TCG plugins (docs/devel/tcg-plugins, API version 1).
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

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_trans_cb);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb*, vcpu_cb,
                                                 enum qemu_plugin_cb_flags, void*);
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn*,
                                                       enum qemu_plugin_op, void*,
                                                       uint64_t);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*, mem_cb,
                                             enum qemu_plugin_cb_flags,
                                             enum qemu_plugin_mem_rw, void*);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, exit_cb, void*);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*,
                                                        size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn*);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { kMaxFunctions = 64, kMaxTables = 256 };

/* A function whose calls are counted; one call within another is part of it. */
struct function {
  uint64_t address, return_to, started_with;
  bool is_open;
};

/* Instructions of a method: `count` entries of `stride` bytes. */
struct table {
  uint64_t base, stride, count;
  uint64_t *calls, *executed;
};

/* A block of guest code that is executed from its begin to its end. */
struct block {
  uint64_t begin, end;
};

static struct function functions[kMaxFunctions];
static size_t function_count;
static struct function executor;
static uint64_t executor_bytes;
static struct table tables[kMaxTables];
static size_t table_count;

static uint64_t executed;           /* all instructions */
static uint64_t executed_by_itself; /* those in the executor's own code */
static uint64_t previous_end;       /* of the block before */

static uint64_t* current; /* where the instruction of the method is counted */
static uint64_t current_started_with;

static FILE* out;

static void end_instruction(void) {
  const uint64_t outside = executed - executed_by_itself;
  if (current != NULL) *current += outside - current_started_with;
  current = NULL;
  current_started_with = outside;
}

static void enter(struct function* function) {
  if (function->is_open) return;
  function->is_open = true;
  function->return_to = previous_end;
  function->started_with = executed;
}

static bool leave(struct function* function, uint64_t at) {
  if (!function->is_open || at != function->return_to) return false;
  function->is_open = false;
  return true;
}

static void on_block(unsigned int cpu, void* data) {
  (void)cpu;
  const struct block* block = data;
  for (size_t i = 0; i < function_count; ++i) {
    struct function* function = &functions[i];
    if (leave(function, block->begin)) {
      fprintf(out, "call %zu %" PRIu64 "\n", i, executed - function->started_with);
    }
    if (block->begin == function->address) enter(function);
  }
  if (leave(&executor, block->begin)) {
    end_instruction();
    fprintf(out, "run %" PRIu64 "\n", executed - executor.started_with);
  }
  if (executor_bytes != 0 && block->begin == executor.address) enter(&executor);
  previous_end = block->end;
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t at,
                      void* data) {
  (void)cpu;
  (void)info;
  (void)data;
  for (size_t t = 0; t < table_count; ++t) {
    struct table* table = &tables[t];
    if (at < table->base || at - table->base >= table->stride * table->count) continue;
    const uint64_t index = (at - table->base) / table->stride;
    if (current == &table->executed[index]) return;
    end_instruction();
    current = &table->executed[index];
    ++table->calls[index];
    return;
  }
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  const size_t count = qemu_plugin_tb_n_insns(tb);
  if (count == 0) return;
  /* Lives as long as the guest: QEMU does not say when it drops a translation. */
  struct block* block = malloc(sizeof *block);
  if (block == NULL) abort();
  const struct qemu_plugin_insn* last = qemu_plugin_tb_get_insn(tb, count - 1);
  block->begin = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
  block->end = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
  qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
  for (size_t i = 0; i < count; ++i) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    const uint64_t at = qemu_plugin_insn_vaddr(insn);
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                               &executed, 1);
    if (at < executor.address || at - executor.address >= executor_bytes) continue;
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                               &executed_by_itself, 1);
    /* Reads and writes: QEMU 7.2 mistakes one for the other if asked for reads only,
     * and the executor writes to no instruction. */
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
      fprintf(out, "instruction %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t, i,
              tables[t].calls[i], tables[t].executed[i]);
    }
  }
  fprintf(out, "total %" PRIu64 "\n", executed);
  fclose(out);
}

static bool is_key(const char* argument, const char* key, uint64_t* value) {
  const size_t length = strlen(key);
  if (strncmp(argument, key, length) != 0 || argument[length] != '=') return false;
  *value = strtoull(argument + length + 1, NULL, 0);
  return true;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t* info,
                                                               int argc, char** argv) {
  (void)info;
  const char* path = NULL;
  for (int i = 0; i < argc; ++i) {
    uint64_t value;
    struct table* last = table_count != 0 ? &tables[table_count - 1] : NULL;
    if (strncmp(argv[i], "out=", 4) == 0) {
      path = argv[i] + 4;
    } else if (is_key(argv[i], "function", &value) && function_count < kMaxFunctions) {
      functions[function_count++].address = value;
    } else if (is_key(argv[i], "executor", &value)) {
      executor.address = value;
    } else if (is_key(argv[i], "bytes", &value)) {
      executor_bytes = value;
    } else if (is_key(argv[i], "table", &value) && table_count < kMaxTables) {
      tables[table_count++].base = value;
    } else if (is_key(argv[i], "stride", &value) && last != NULL && value != 0) {
      last->stride = value;
    } else if (is_key(argv[i], "count", &value) && last != NULL) {
      last->count = value;
      last->calls = calloc(value + 1, sizeof *last->calls);
      last->executed = calloc(value + 1, sizeof *last->executed);
      if (last->calls == NULL || last->executed == NULL) return 1;
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
