/* The serial protocol of the MLPerf Tiny benchmark: commands that end with
 * '%', answers in lines, and m-ready after each. C11, no C library. */

#include <stdarg.h>

#include "th.h"

static size_t expected; /* bytes that `db load` announced; 0: none */
static size_t received;
static int has_results;

size_t ee_sample_size(void) { return received; }

static void print_text(const char* text) {
  while (*text != '\0') th_putchar(*text++);
}

static void print_number(uint64_t value) {
  char digits[21];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do {
    digits[--at] = (char)('0' + (int)(value % 10));
    value /= 10;
  } while (value != 0);
  print_text(digits + at);
}

void th_printf(const char* format, ...) {
  static const char kHex[] = "0123456789abcdef";
  va_list arguments;
  va_start(arguments, format);
  for (; *format != '\0'; ++format) {
    if (*format != '%') {
      th_putchar(*format);
      continue;
    }
    ++format;
    if (*format == 's') {
      print_text(va_arg(arguments, const char*));
    } else if (*format == 'u') {
      print_number(va_arg(arguments, size_t));
    } else if (*format == 'x') {
      const unsigned byte = va_arg(arguments, unsigned);
      th_putchar(kHex[byte >> 4 & 15]);
      th_putchar(kHex[byte & 15]);
    }
  }
  va_end(arguments);
}

void th_print_float(float value) {
  if (value < 0) th_putchar('-');
  const float size = value < 0 ? -value : value;
  if (!(size < 1e12F)) { /* the host reads these as floats, too */
    print_text(size > 0 ? "inf" : "nan");
    return;
  }
  /* The whole part is exact, and so is what remains. */
  uint64_t whole = (uint64_t)size;
  uint32_t millionths = (uint32_t)((size - (float)whole) * 1e6F + 0.5F);
  if (millionths == 1000000) {
    millionths = 0;
    ++whole;
  }
  print_number(whole);
  th_putchar('.');
  for (uint32_t unit = 100000; unit != 0; unit /= 10)
    th_putchar((char)('0' + (int)(millionths / unit % 10)));
}

static int same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

/* The next word of a command, which is cut there; "" at its end. */
static char* next_word(char** rest) {
  while (**rest == ' ') ++*rest;
  char* const word = *rest;
  while (**rest != ' ' && **rest != '\0') ++*rest;
  if (**rest == ' ') *(*rest)++ = '\0';
  return word;
}

/* Whether all of a word is a number below 10^9. */
static int read_number(const char* word, size_t* value) {
  size_t digits = 0;
  for (*value = 0; *word >= '0' && *word <= '9' && digits < 9; ++word, ++digits)
    *value = *value * 10 + (size_t)(*word - '0');
  return digits != 0 && *word == '\0';
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static void load(const char* word) {
  size_t size;
  if (!read_number(word, &size) || size == 0) {
    th_printf("e-[db load needs a number of bytes]\r\n");
  } else if (size > th_sample_bytes_max) {
    th_printf("e-[%u bytes are too many, the most is %u]\r\n", size,
              th_sample_bytes_max);
  } else {
    expected = size;
    received = 0;
    has_results = 0;
    th_printf("m-[Expecting %u bytes]\r\n", size);
  }
}

/* All of the bytes are stored, or none. */
static void store(const char* hex) {
  size_t digits = 0;
  for (; hex[digits] != '\0'; ++digits) {
    if (hex_digit(hex[digits]) < 0) {
      th_printf("e-[not a hex digit in '%s']\r\n", hex);
      return;
    }
  }
  if (digits % 2 != 0) {
    th_printf("e-[odd number of hex digits]\r\n");
  } else if (expected == 0) {
    th_printf("e-[db load comes first]\r\n");
  } else if (digits / 2 > expected - received) {
    th_printf("e-[%u bytes are too many, %u are missing]\r\n", digits / 2,
              expected - received);
  } else {
    for (; *hex != '\0'; hex += 2)
      ee_sample[received++] =
          (uint8_t)(hex_digit(hex[0]) * 16 + hex_digit(hex[1]));
    if (received == expected) th_printf("m-load-done\r\n");
  }
}

static void print_sample(void) {
  for (size_t at = 0; at < received; ++at) {
    th_printf(at % 8 == 0 ? "m-buffer-%x" : "-%x", (unsigned)ee_sample[at]);
    if (at % 8 == 7 || at + 1 == received) th_printf("\r\n");
  }
}

static void buffer(char* rest) {
  const char* const word = next_word(&rest);
  if (*word == '\0') {
    th_printf("e-[db needs load, print or hex digits]\r\n");
  } else if (same(word, "load")) {
    load(next_word(&rest));
  } else if (same(word, "print")) {
    print_sample();
  } else {
    store(word);
  }
}

static void infer(char* rest) {
  size_t runs = 1;
  size_t warmups = 10;
  const char* const first = next_word(&rest);
  const char* const second = next_word(&rest);
  if (*first != '\0' && (!read_number(first, &runs) || runs == 0)) {
    th_printf("e-[the number of inferences must be above 0]\r\n");
  } else if (*second != '\0' && !read_number(second, &warmups)) {
    th_printf("e-[the number of warmups must be 0 or above]\r\n");
  } else if (expected == 0 || received != expected) {
    th_printf("e-[no sample: %u of %u bytes loaded]\r\n", received, expected);
  } else if (!th_sample_fits(received)) {
    th_printf("e-[the net takes no sample of %u bytes]\r\n", received);
  } else {
    th_load_tensor();
    th_printf("m-warmup-start-%u\r\n", warmups);
    while (warmups-- != 0) th_infer();
    th_printf("m-warmup-done\r\n");
    th_printf("m-infer-start-%u\r\n", runs);
    th_timestamp();
    th_pre();
    while (runs-- != 0) th_infer();
    th_post();
    th_timestamp();
    th_printf("m-infer-done\r\n");
    has_results = 1;
    th_results();
  }
}

void th_command_ready(char* command) {
  char* const word = next_word(&command);
  if (same(word, "name")) {
    th_printf("m-name-dut-[%s]\r\n", TH_VENDOR_NAME_STRING);
  } else if (same(word, "profile")) {
    th_printf("m-profile-[MLPerf Tiny firmware of Orchestrator]\r\n");
    th_printf("m-model-[%s]\r\n", TH_MODEL_VERSION);
  } else if (same(word, "help")) {
    th_printf("name, profile, timestamp, results\r\n");
    th_printf("db load BYTES, db HEX, db print\r\n");
    th_printf("infer [RUNS=1] [WARMUPS=10]\r\n");
  } else if (same(word, "timestamp")) {
    th_timestamp();
  } else if (same(word, "db")) {
    buffer(command);
  } else if (same(word, "infer")) {
    infer(command);
  } else if (same(word, "results")) {
    if (has_results) {
      th_results();
    } else {
      th_printf("e-[no results: infer comes first]\r\n");
    }
  } else {
    th_printf("e-[no such command: %s]\r\n", word);
  }
  th_printf("m-ready\r\n");
}

void th_monitor(void) {
  static char command[EE_CMD_SIZE + 1];
  size_t length = 0;
  th_serialport_initialize();
  th_timestamp_initialize();
  th_printf("m-timestamp-mode-performance\r\n");
  th_final_initialize();
  th_printf("m-init-done\r\nm-ready\r\n");
  for (;;) {
    const char c = th_getchar();
    if (c == '%') {
      if (length > EE_CMD_SIZE) {
        th_printf("e-[command longer than %u characters]\r\n",
                  (size_t)EE_CMD_SIZE);
        th_printf("m-ready\r\n");
      } else {
        command[length] = '\0';
        th_command_ready(command);
      }
      length = 0;
    } else if (c != '\r' && c != '\n') {
      if (length < EE_CMD_SIZE) command[length] = c;
      if (length <= EE_CMD_SIZE) ++length;
    }
  }
}
