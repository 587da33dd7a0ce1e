/* SPDX-License-Identifier: MIT */
/*
 * output.h: for those who write several files, or hold a temporary name: interruptions can wait.
 */
#ifndef IRON_CORE_OUTPUT_H
#define IRON_CORE_OUTPUT_H

#include <signal.h>

/* Between hold and release SIGINT, SIGTERM and SIGHUP wait: nobody dies with a temporary file. */
void iron__interruptions_hold(sigset_t *before);
void iron__interruptions_release(const sigset_t *before);

#endif
