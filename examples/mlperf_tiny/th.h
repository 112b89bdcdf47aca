/* The functions that a submitter implements (th_*), and what the protocol
 * (runner.c) offers to them. Names are those of the MLPerf Tiny benchmark. */
#ifndef TH_H_
#define TH_H_

#include <stddef.h>
#include <stdint.h>

#define EE_CMD_SIZE 80u /* most characters of a command */

#ifndef TH_VENDOR_NAME_STRING
#define TH_VENDOR_NAME_STRING "orchestrator"
#endif

/* submitter_implemented.c: the net. */
extern const size_t th_sample_bytes_max; /* most bytes that a sample may have */
int th_sample_fits(size_t bytes); /* whether a sample may have this size */
void th_load_tensor(void);
void th_infer(void);
void th_results(void);
void th_pre(void);
void th_post(void);
void th_final_initialize(void);
void th_timestamp(void);

/* board.c: the chip. */
void th_serialport_initialize(void);
void th_timestamp_initialize(void);
char th_getchar(void);
void th_putchar(char c);
uint64_t th_microseconds(void); /* since th_timestamp_initialize */

/* runner.c: the protocol. */
extern uint8_t ee_sample[]; /* of submitter_implemented.c, filled by `db` */
size_t ee_sample_size(void);
void th_printf(const char* format, ...); /* %s %u (size_t) %x (two digits) */
void th_print_float(float value);        /* six decimals */
void th_command_ready(char* command);
void th_monitor(void); /* initializes, then answers commands for ever */

#endif /* TH_H_ */
