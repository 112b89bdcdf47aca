/* QEMU TCG plugin: counts guest instructions, all of them and those of regions.
 *
 * gcc -O2 -fPIC -shared icount.c -o icount.so
 * qemu-system-arm ... -plugin ./icount.so,begin=0xADDR,end=0xADDR,out=FILE
 *
 * A region begins when its `begin` is executed and ends before the first of its `end`s
 * is; it may be passed many times. Each `begin` opens a region, numbered from 0, and the
 * `end`s up to the next `begin` are its own. FILE gets "REGION COUNT" for each passage,
 * then "total COUNT" with every instruction of the run.
 *
 * Debian ships no qemu-plugin.h. The declarations below are written after QEMU's
 * documentation of TCG plugins (docs/devel/tcg-plugins, API version 1).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct qemu_info_t qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*tb_trans_cb)(qemu_plugin_id_t, struct qemu_plugin_tb*);
typedef void (*vcpu_cb)(unsigned int, void*);
typedef void (*exit_cb)(qemu_plugin_id_t, void*);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_trans_cb);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn*, vcpu_cb,
                                                   enum qemu_plugin_cb_flags, void*);
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn*,
                                                       enum qemu_plugin_op, void*,
                                                       uint64_t);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, exit_cb, void*);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*,
                                                        size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { kMaxRegions = 16, kMaxEnds = 8 };

struct region {
  uint64_t begin, ends[kMaxEnds], started_with;
  size_t end_count;
  bool inside;
};

static struct region regions[kMaxRegions];
static size_t region_count;
static uint64_t executed;
static FILE* out;

static void on_begin(unsigned int cpu, void* data) {
  (void)cpu;
  struct region* region = data;
  region->inside = true;
  region->started_with = executed;
}

static void on_end(unsigned int cpu, void* data) {
  (void)cpu;
  struct region* region = data;
  if (!region->inside) return;
  region->inside = false;
  fprintf(out, "%zu %" PRIu64 "\n", (size_t)(region - regions),
          executed - region->started_with);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  const size_t count = qemu_plugin_tb_n_insns(block);
  for (size_t i = 0; i < count; ++i) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    const uint64_t at = qemu_plugin_insn_vaddr(insn);
    for (struct region* r = regions; r < regions + region_count; ++r) {
      if (at == r->begin) {
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, QEMU_PLUGIN_CB_NO_REGS,
                                               r);
      }
      for (size_t e = 0; e < r->end_count; ++e) {
        if (at != r->ends[e]) continue;
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, QEMU_PLUGIN_CB_NO_REGS, r);
      }
    }
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                               &executed, 1);
  }
}

static void on_exit_(qemu_plugin_id_t id, void* data) {
  (void)id;
  (void)data;
  fprintf(out, "total %" PRIu64 "\n", executed);
  fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t* info,
                                                               int argc, char** argv) {
  (void)info;
  const char* path = NULL;
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "begin=", 6) == 0) {
      if (region_count == kMaxRegions) return 1;
      regions[region_count++].begin = strtoull(argv[i] + 6, NULL, 0);
    }
    if (strncmp(argv[i], "end=", 4) == 0) {
      if (region_count == 0) return 1;
      struct region* region = &regions[region_count - 1];
      if (region->end_count == kMaxEnds) return 1;
      region->ends[region->end_count++] = strtoull(argv[i] + 4, NULL, 0);
    }
    if (strncmp(argv[i], "out=", 4) == 0) path = argv[i] + 4;
  }
  out = path != NULL ? fopen(path, "w") : stderr;
  if (out == NULL) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
  qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
  return 0;
}
