// What a command is at, on a terminal, where a step takes over a second: one line on standard error that grows old with the step and is wiped at its end.
#ifndef ULY_RUNTIME_BASE_PROGRESS_H
#define ULY_RUNTIME_BASE_PROGRESS_H

// |what|: a literal. One step at a time; forked children show nothing.
void uly_progress_start(const char *what);
void uly_progress_stop(void);

#endif
