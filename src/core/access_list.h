/* SPDX-License-Identifier: MIT */
/*
 * access_list.h: who may use an open file, where its mode alone does not tell.
 *
 * A file with an access list (POSIX ACL) shows in the group's bits of its mode what the list gives
 * to anyone at most. systemd hands a credential over so: root's file, mode 0400, and one entry that
 * lets the service's user read it; stat then says 0440, though no group may read anything.
 */
#ifndef IRON_CORE_ACCESS_LIST_H
#define IRON_CORE_ACCESS_LIST_H

#include <stdbool.h>
#include <sys/types.h>

/* Does the file have a list, and does that give nothing to a group or to others, nor to any user
 * but this process's, root and its owner? False also if the list cannot be understood. */
bool iron__access_list_is_private(int fd);

#endif
