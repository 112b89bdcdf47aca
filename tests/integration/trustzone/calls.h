/* Calls of every entry function, for any side: what the outputs are, as text. */
#ifndef CALLS_H_
#define CALLS_H_

/* Prints a text; of the program that includes this. */
void say(const char* text);

/* Calls each method and prints status and bits of the outputs. */
void call_models(void);

#endif
