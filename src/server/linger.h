/* SPDX-License-Identifier: MIT */
/*
 * linger.h: closing politely. Whoever closes a socket with bytes unread resets it, and the peer's
 * system may throw away the answer that its program has not read yet. So sockets whose answer is on
 * its way, while the peer still sends, come here: what arrives is discarded until the peer closes
 * or two seconds have passed. Their number is bounded; beyond it they are closed at once.
 */
#ifndef IRON_SERVER_LINGER_H
#define IRON_SERVER_LINGER_H

#include <iron/iron.h>

typedef struct iron__linger iron__linger;

iron_status iron__linger_start(iron__linger **out, iron_error *err);
/* Waits for those that are left, two seconds at most. NULL is fine. */
void iron__linger_stop(iron__linger *linger);
/* Takes a TCP socket that does not block, or a duplicate of one that somebody else still writes to
 * but no longer reads. -1 is fine. */
void iron__linger_take(iron__linger *linger, int fd);

#endif
