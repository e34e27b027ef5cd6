// Large memory straight from the operating system: zeroed, page-aligned, and not there until it is touched.
#ifndef ULY_RUNTIME_BASE_PAGES_H
#define ULY_RUNTIME_BASE_PAGES_H

#include <stddef.h>

// NULL where there is none. |bytes| may be 0.
void *uly_pages_alloc(size_t bytes);
void uly_pages_free(void *memory, size_t bytes); // of the same |bytes|; accepts NULL

#endif
