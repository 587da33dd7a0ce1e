/* SPDX-License-Identifier: MIT */
/*
 * log_line.c: one line put together; see log.h. It is made by whoever tells it, and copied into the
 * queue as a whole.
 */
#include "server/log.h"

#include <stdarg.h>
#include <stdlib.h>

static const char *const level_names[] = {"debug", "info", "warning", "error"};

bool iron__log_begin(iron__log *log, iron__log_line *line, iron__log_level level,
                     const char *event) {
    FILE *to;

    *line = (iron__log_line){.log = log};
    to = open_memstream(&line->text, &line->bytes);
    if (!to) {
        iron__log_put(log, NULL, 0);
        return false;
    }
    line->json = (iron__json_writer){.to = to, .is_on_a_line = true};
    iron__json_write_open(&line->json, NULL, '{');
    iron__json_write_text(&line->json, "level", level_names[level]);
    iron__json_write_text(&line->json, "event", event);
    return true;
}

void iron__log_end(iron__log_line *line) {
    bool is_whole;

    iron__json_write_close(&line->json, '}');
    iron__json_write_end(&line->json);
    is_whole = !ferror(line->json.to);
    is_whole = fclose(line->json.to) == 0 && is_whole;
    iron__log_put(line->log, is_whole ? line->text : NULL, line->bytes);
    free(line->text);
}

/* A line for people is one line, whatever was quoted in it. */
static void tell_people(iron__log *log, const char *sentence) {
    char *line = NULL;
    int bytes = asprintf(&line, "iron: %s\n", sentence);

    for (int k = 0; k + 1 < bytes; k++)
        if ((unsigned char)line[k] < 0x20)
            line[k] = '?';
    iron__log_put(log, bytes > 0 ? line : NULL, bytes > 0 ? (size_t)bytes : 0);
    if (bytes >= 0)
        free(line);
}

static void tell(iron__log *log, iron__log_level level, const char *event, const char *sentence) {
    iron__log_line line;

    if (!iron__log_is_json(log)) {
        tell_people(log, sentence);
    } else if (iron__log_begin(log, &line, level, event)) {
        iron__json_write_text(&line.json, "message", sentence);
        iron__log_end(&line);
    }
}

static void tell_values(iron__log *log, iron__log_level level, const char *event,
                        const char *format, va_list values) {
    char *sentence = NULL;

    if (vasprintf(&sentence, format, values) < 0) {
        iron__log_put(log, NULL, 0);
        return;
    }
    tell(log, level, event, sentence);
    free(sentence);
}

void iron__log_tell(iron__log *log, iron__log_level level, const char *event, const char *format,
                    ...) {
    va_list values;

    if (!iron__log_wants(log, level))
        return;
    va_start(values, format);
    tell_values(log, level, event, format, values);
    va_end(values);
}

void iron__note(iron__log *log, const char *format, ...) {
    va_list values;

    if (!iron__log_wants(log, IRON_LOG_WARNING))
        return;
    va_start(values, format);
    tell_values(log, IRON_LOG_WARNING, "note", format, values);
    va_end(values);
}
