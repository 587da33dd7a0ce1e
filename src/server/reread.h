/* SPDX-License-Identifier: MIT */
/*
 * reread.h: was a header that only the HTTP library has read written strictly?
 *
 * The gate sees the first header of a connection as it came. Of later ones, and of all under TLS,
 * there is the library's view alone, and the library forgives: it takes bare line feeds, folds,
 * zero bytes and drops fields without a name, all of it unseen. But it takes a header apart where
 * it lies, and puts zeros where blanks, colons and line ends were: so each name and value must
 * stand exactly where a strict header has it, and the last of them at the end of what was read. One
 * thing is not seen: a zero byte and a line feed in the place of CR LF.
 *
 * This leans on how the library works inside. A library that works otherwise fails the check, also
 * for a first header that the gate found right: then the connection ends with its answer, and later
 * headers never come.
 */
#ifndef IRON_SERVER_REREAD_H
#define IRON_SERVER_REREAD_H

#include "server/audit.h"

#include <microhttpd.h>

/* `target` is where the library has it; fills the header with its view. Fields beyond the limit
 * make it too large: a verdict. */
iron__verdict iron__reread_view(struct MHD_Connection *connection, const char *method,
                                const char *version, iron__header *header);
/* `target` is the pointer that the library gave for it, `target_bytes` its length at that time. */
bool iron__reread_is_strict(struct MHD_Connection *connection, const iron__header *header,
                            const char *target, size_t target_bytes);

#endif
