/* SPDX-License-Identifier: MIT */
/* outcome.c: see outcome.h. */
#include "outcome.h"

#include "args.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Started with a stream closed, the first file opened would take its number and, say, a state be
 * written over with what is meant for the terminal. */
void open_standard_streams(void) {
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* One line, whatever a file's name holds. */
void print_error(const char *name, const iron_error *err) {
    fprintf(stderr, "%s: ", name);
    for (const char *at = err->text; *at; at++)
        fputc((unsigned char)*at < 0x20 || *at == 0x7F ? '?' : *at, stderr);
    fputc('\n', stderr);
}

bool finish_output(iron_status *status, iron_error *err) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return err->native != EPIPE;
    if (errno != EPIPE && *status == IRON_OK)
        *status = usage(err, "cannot write standard output: %s", strerror(errno));
    return errno != EPIPE;
}
