/* SPDX-License-Identifier: MIT */
/*
 * log.h: lines on standard error, for whoever runs the server: sentences ("iron: ..."), or an
 * object of JSON a line.
 *
 * Whoever has something to say puts a line into a queue of bounded size and goes on: a terminal
 * that is stopped, a pipe that nobody reads and a full disk cost lines, never time. Lines that do
 * not fit are dropped and counted. One thread writes, each line in one write, which a pipe takes as
 * a whole if it has at most IRON_LOG_WRITE_MAX bytes, whoever else writes there.
 *
 * Every function may be called from any thread, and with a log that is NULL.
 */
#ifndef IRON_SERVER_LOG_H
#define IRON_SERVER_LOG_H

#include "core/json_write.h"

#include <iron/iron.h>

#include <stddef.h>

#define IRON_LOG_WRITE_MAX 4096u /* PIPE_BUF of Linux */

typedef enum iron__log_level {
    IRON_LOG_DEBUG,
    IRON_LOG_INFO,
    IRON_LOG_WARNING,
    IRON_LOG_ERROR
} iron__log_level;

typedef struct iron__log iron__log;

typedef struct iron__log_plan {
    int fd; /* borrowed */
    bool is_json;
    iron__log_level least; /* what is less grave is left out */
    size_t room;           /* bytes that wait at most; 0: 2 MiB */
    uint32_t patience_ms;  /* for what still waits at the end; 0: three seconds */
} iron__log_plan;

iron_status iron__log_open(const iron__log_plan *plan, iron__log **out, iron_error *err);
/* Writes what waits, unless nobody takes it. */
void iron__log_close(iron__log *log);

/* Is it worth making such a line? Requests are told in JSON alone. */
bool iron__log_wants(const iron__log *log, iron__log_level level);
bool iron__log_is_json(const iron__log *log);

/* A line as it is made: with `json` open for members. */
typedef struct iron__log_line {
    iron__log *log;
    iron__json_writer json;
    char *text;
    size_t bytes;
} iron__log_line;

/* An object that tells its level and event; false: there is no memory, and the line is dropped. */
bool iron__log_begin(iron__log *log, iron__log_line *line, iron__log_level level,
                     const char *event);
void iron__log_end(iron__log_line *line);

/* Something happened. In JSON the sentence is its message. */
void iron__log_tell(iron__log *log, iron__log_level level, const char *event, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
/* The event "note", a warning. */
void iron__note(iron__log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A whole line with its end; JSON begins with '{', after which the time is put. NULL: there was no
 * memory for the line, and it counts as dropped. */
void iron__log_put(iron__log *log, const char *line, size_t bytes);

/* Lines written; lines that did not fit, or were refused by whatever standard error is. */
uint64_t iron__log_lines(const iron__log *log);
uint64_t iron__log_dropped(const iron__log *log);

#endif
