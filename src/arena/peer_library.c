/* SPDX-License-Identifier: MIT */
/*
 * peer_library.c: loads one plug-in and judges it before anybody calls it.
 *
 * What is looked at: that it loads with all that it needs (RTLD_NOW: a missing library is found
 * here and not in the middle of a race), that it has the one function, that it was built for this
 * contract (abi, struct_size), and that its rows are named and complete. One bad row condemns the
 * plug-in: whoever breaks the contract once is not trusted with the rest.
 *
 * RTLD_LOCAL: two peers may bring different versions of the same library. A command without shared
 * libraries has no loader that could do any of this.
 */
#include "arena/peer_library.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if IRON_WITH_PEERS
#include <dlfcn.h>
#endif

#define ENTRY "iron_peer_list_get"

static const char *const backends[] = {"cpu", "cuda", "opencl"};

/* Fills the reason and returns false. */
static bool refuse(char *reason, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(char *reason, size_t size, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, size, format, arguments);
    va_end(arguments);
    return false;
}

/* Length of the name's next part: small letters, digits, - and _. */
static size_t part_length(const char *name) {
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");
}

/* op.backend.library */
static bool is_name(const char *name) {
    size_t op = part_length(name), backend;
    bool is_known = false;

    if (op == 0 || name[op] != '.')
        return false;
    name += op + 1;
    backend = part_length(name);
    for (size_t k = 0; k < sizeof backends / sizeof backends[0]; k++)
        is_known |= strlen(backends[k]) == backend && strncmp(name, backends[k], backend) == 0;
    if (!is_known || name[backend] != '.')
        return false;
    name += backend + 1;
    return name[0] && name[part_length(name)] == '\0';
}

static bool is_row_sound(const iron_peer *row, size_t index, char *reason, size_t size) {
    if (row->struct_size != sizeof *row)
        return refuse(reason, size, "row %zu has struct_size %u, this iron's is %zu; build it anew",
                      index, (unsigned)row->struct_size, sizeof *row);
    if (!row->name || !is_name(row->name))
        return refuse(reason, size,
                      "row %zu is named '%.60s', which is not op.backend.library with a backend of "
                      "cpu, cuda, opencl",
                      index, row->name ? row->name : "(null)");
    if (!row->idea || !row->dtypes || !row->open || !row->run || !row->close)
        return refuse(reason, size,
                      "row %.60s is incomplete: it needs idea, dtypes, open, run, "
                      "close",
                      row->name);
    return true;
}

bool iron__peer_list_is_sound(const iron_peer_list *list, char *reason, size_t size) {
    if (!list)
        return refuse(reason, size, ENTRY " returned NULL");
    if (list->abi != IRON_PEER_ABI)
        return refuse(reason, size, "it has abi %u, this iron has %u; build it anew",
                      (unsigned)list->abi, IRON_PEER_ABI);
    if (!list->library || !list->version || !list->rows || list->count == 0)
        return refuse(reason, size, "its list has no library, no version or no rows");
    for (size_t k = 0; k < list->count; k++)
        if (!is_row_sound(&list->rows[k], k, reason, size))
            return false;
    return true;
}

#if IRON_WITH_PEERS

const char *iron__peer_library_obstacle(void) { return NULL; }

static void copy_fault(char *reason, size_t size) {
    const char *fault = dlerror();

    snprintf(reason, size, "%s", fault ? fault : "it cannot be loaded");
}

const iron_peer_list *iron__peer_library_load(const char *path, char *reason, size_t size) {
    const iron_peer_list *(*get)(void) = NULL;
    const iron_peer_list *list;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol;

    if (!library) {
        copy_fault(reason, size);
        return NULL;
    }
    symbol = dlsym(library, ENTRY);
    if (!symbol) {
        copy_fault(reason, size);
        dlclose(library);
        return NULL;
    }
    memcpy(&get, &symbol, sizeof get); /* ISO C converts no object's address to a function's */
    list = get();
    if (iron__peer_list_is_sound(list, reason, size))
        return list;
    dlclose(library);
    return NULL;
}

#else

const char *iron__peer_library_obstacle(void) {
    return "this build of iron loads no plug-ins; build it without IRON_STATIC_COMMAND";
}

const iron_peer_list *iron__peer_library_load(const char *path, char *reason, size_t size) {
    (void)path;
    snprintf(reason, size, "%s", iron__peer_library_obstacle());
    return NULL;
}

#endif
