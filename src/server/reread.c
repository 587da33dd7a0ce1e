/* SPDX-License-Identifier: MIT */
/*
 * reread.c: see reread.h.
 */
#include "server/reread.h"

#include <string.h>

typedef struct collection {
    iron__header *header;
    bool is_too_many;
} collection;

static enum MHD_Result collect(void *context, enum MHD_ValueKind kind, const char *name,
                               size_t name_bytes, const char *value, size_t value_bytes) {
    collection *c = context;
    iron__header *header = c->header;

    (void)kind;
    if (header->count == IRON_HEADER_FIELDS_MAX) {
        c->is_too_many = true;
        return MHD_NO;
    }
    header->fields[header->count++] =
        iron__field_make((iron__text){name ? name : "", name ? name_bytes : 0},
                         (iron__text){value ? value : "", value ? value_bytes : 0});
    return MHD_YES;
}

static size_t header_bytes(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return info ? info->header_size : 0;
}

iron__verdict iron__reread_view(struct MHD_Connection *connection, const char *method,
                                const char *version, iron__header *header) {
    collection c = {.header = header};

    header->method = iron__text_of(method);
    header->version = iron__text_of(version);
    header->count = 0;
    header->body_bytes = 0;
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, collect, &c);
    if (c.is_too_many || header_bytes(connection) > IRON_HEADER_BYTES_MAX)
        return iron__verdict_make("header-too-large", "send fewer or shorter header fields",
                                  "the header has more than %u fields or %zu bytes",
                                  IRON_HEADER_FIELDS_MAX, IRON_HEADER_BYTES_MAX);
    return iron__verdict_fine();
}

/* Steps over a line's end, which the library has turned into two zeros. */
static bool step_line_end(const char **at, const char *end) {
    if (end - *at < 2 || (*at)[0] != '\0' || (*at)[1] != '\0')
        return false;
    *at += 2;
    return true;
}

static void step_blanks(const char **at, const char *end) {
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
}

static bool step_field(const char **at, const char *end, const iron__field *field) {
    if (*at != field->name.at)
        return false;
    *at += field->name.bytes;
    if (*at >= end || **at != '\0') /* the colon */
        return false;
    ++*at;
    step_blanks(at, end);
    if (*at != field->value.at)
        return false;
    *at += field->value.bytes;
    step_blanks(at, end);
    return step_line_end(at, end);
}

bool iron__reread_is_strict(struct MHD_Connection *connection, const iron__header *header,
                            const char *target, size_t target_bytes) {
    const char *at = header->method.at;
    const char *end = at + header_bytes(connection);

    if (target != at + header->method.bytes + 1 || header->version.at != target + target_bytes + 1)
        return false;
    at = header->version.at + header->version.bytes;
    if (!step_line_end(&at, end))
        return false;
    for (uint32_t k = 0; k < header->count; k++)
        if (!step_field(&at, end, &header->fields[k]))
            return false;
    return step_line_end(&at, end) && at == end;
}
