/* SPDX-License-Identifier: MIT */
/* route_text.c: see route_text.h. Words of 32 and 64 bits are written as hexadecimal text, the sum
 * as decimal text: JSON's numbers are doubles to many who read them. */
#include "server/route_text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <time.h>

bool iron__text_number(const char *text, uint64_t *value) {
    uint64_t number = 0;
    size_t k = 0;

    for (; text[k] >= '0' && text[k] <= '9'; k++)
        if (k == 20 || __builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[k] - '0'), &number))
            return false;
    if (k == 0 || text[k] != '\0')
        return false;
    *value = number;
    return true;
}

void iron__time_text(uint64_t milliseconds, char text[IRON_TIME_TEXT]) {
    const uint64_t last = UINT64_C(253402300799999); /* of the year 9999 */
    uint64_t bounded = milliseconds < last ? milliseconds : last;
    time_t seconds = (time_t)(bounded / 1000);
    struct tm at;
    size_t used;

    gmtime_r(&seconds, &at);
    used = strftime(text, IRON_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &at);
    snprintf(text + used, IRON_TIME_TEXT - used, ".%03uZ", (unsigned)(bounded % 1000));
}

/* "0.5" in thousandths; 1000 if it is no weight, as if it were not there. */
static unsigned weight_of(const char *digits, size_t length) {
    unsigned weight, unit = 100;

    if (length == 0 || (digits[0] != '0' && digits[0] != '1') || (length > 1 && digits[1] != '.'))
        return 1000;
    weight = digits[0] == '1' ? 1000 : 0;
    for (size_t k = 2; k < length && unit > 0; k++, unit /= 10) {
        if (digits[k] < '0' || digits[k] > '9')
            return 1000;
        weight += unit * (unsigned)(digits[k] - '0');
    }
    return weight < 1000 ? weight : 1000;
}

static size_t trimmed(const char **at, size_t length) {
    while (length > 0 && (**at == ' ' || **at == '\t')) {
        (*at)++;
        length--;
    }
    while (length > 0 && ((*at)[length - 1] == ' ' || (*at)[length - 1] == '\t'))
        length--;
    return length;
}

/* 3: the type itself, 2: its first half, 1: anything, 0: something else. */
static unsigned closeness(const char *range, size_t length, const char *type) {
    size_t half = strcspn(type, "/");
    const char *anything = type[half] ? "*/*" : "*";

    if (length == strlen(type) && strncasecmp(range, type, length) == 0)
        return 3;
    if (length == half + 2 && strncasecmp(range, type, half + 1) == 0 && range[half + 1] == '*')
        return 2;
    return length == strlen(anything) && memcmp(range, anything, length) == 0;
}

/* The weight among a range's parameters, which begin at `at`. */
static unsigned range_weight(const char *at, size_t length) {
    const char *end = at + length;

    while (at < end) {
        const char *next = memchr(at, ';', (size_t)(end - at));
        const char *word = at;
        size_t bytes = trimmed(&word, (size_t)((next ? next : end) - at));

        if (bytes >= 2 && (word[0] == 'q' || word[0] == 'Q') && word[1] == '=')
            return weight_of(word + 2, bytes - 2);
        at = next ? next + 1 : end;
    }
    return 1000;
}

unsigned iron__accept_weight(const char *accept, const char *type) {
    unsigned weight = 0, best = 0;

    if (!accept)
        return 1000;
    while (*accept) {
        size_t length = strcspn(accept, ","), name = strcspn(accept, ",;");
        const char *range = accept;
        size_t bytes = trimmed(&range, name);
        unsigned close = bytes ? closeness(range, bytes, type) : 0;

        if (close > best) {
            best = close;
            weight = name < length ? range_weight(accept + name + 1, length - name - 1) : 1000;
        }
        accept += length + (accept[length] == ',');
    }
    return weight;
}

bool iron__wants_gzip(const char *accept_encoding) {
    unsigned gzip = accept_encoding ? iron__accept_weight(accept_encoding, "gzip") : 0;

    return gzip > 0 && gzip >= iron__accept_weight(accept_encoding, "identity");
}

void iron__write_stand(iron__json_writer *j, const iron__stand_text *stand) {
    char xors[9], sum[21], state[17];

    snprintf(xors, sizeof xors, "%08" PRIx32, stand->xors);
    snprintf(sum, sizeof sum, "%" PRIu64, stand->sum);
    snprintf(state, sizeof state, "%016" PRIx64, stand->state);
    iron__json_write_whole(j, "tokens", stand->tokens);
    iron__json_write_whole(j, "batches", stand->batches);
    iron__json_write_text(j, "xor", xors);
    iron__json_write_text(j, "sum", sum);
    iron__json_write_text(j, "state", state);
    iron__json_write_text(j, "seal", stand->seal);
}

static void write_plan(iron__json_writer *j, const iron__plan *plan) {
    iron__json_write_text(j, "name", plan->name);
    iron__json_write_whole(j, "nodes", plan->nodes);
    iron__json_write_whole(j, "vocab", plan->vocab);
    iron__json_write_whole(j, "batch", plan->batch);
    iron__json_write_text(j, "positions",
                          plan->positions == IRON_POSITIONS_BATCH ? "batch" : "stream");
    iron__json_write_open(j, "lattice", '[');
    for (uint32_t k = 0; k < plan->lattice_count; k++)
        iron__json_write_whole(j, NULL, plan->lattice[k]);
    iron__json_write_close(j, ']');
    iron__json_write_text(j, "mode", plan->mode);
    iron__json_write_text(j, "backend", plan->backend);
    iron__json_write_whole(j, "device", plan->device);
}

void iron__write_engine(iron__json_writer *j, const iron__kept_view *view) {
    char created[IRON_TIME_TEXT], changed[IRON_TIME_TEXT];

    iron__time_text(view->created_ms, created);
    iron__time_text(view->changed_ms, changed);
    write_plan(j, &view->plan);
    iron__json_write_text(j, "device_name", view->device);
    iron__write_stand(j, &(iron__stand_text){.tokens = view->tokens,
                                             .batches = view->batches,
                                             .sum = view->sum,
                                             .state = view->state,
                                             .xors = view->xors,
                                             .seal = view->seal});
    iron__json_write_whole(j, "feeds", view->feeds);
    iron__json_write_text(j, "created", created);
    iron__json_write_text(j, "changed", changed);
}
