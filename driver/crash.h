// What happens when the compiler itself fails: a broken invariant, a signal, a stack or LLVM's memory that ran out. The process ends with exit code 70 and leaves a folder, readable by its
// owner alone, that makes the failure happen again (`ulyc opt --run-reproducer FOLDER`): the inputs, the command line, versions and a backtrace, and the IR before the pass that failed, which
// a second process writes that does the same again.
#ifndef ULY_DRIVER_CRASH_H
#define ULY_DRIVER_CRASH_H

#include "runtime/base/str.h"

// Files of the folder that are read again.
#define ULY_CRASH_ARGUMENTS "arguments" // as /proc/self/cmdline: zero-terminated, without the program's name; inputs are called by their names in the folder
#define ULY_CRASH_LAST_IR "last.mlir"

// From here on; |argv| as main has it.
void uly_crash_watch(int argc, char **argv);
// |operand|, of argv, is an input. Its |text| where it has been read, which must stay; else the file is copied.
void uly_crash_add_input(const char *operand, uly_str text);
// Versions of what compiles, a text that stays.
void uly_crash_add_versions(const char *versions);
// No folder: this process replays one.
void uly_crash_leave_nothing(void);

#endif
