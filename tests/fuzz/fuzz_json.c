/* SPDX-License-Identifier: MIT */
/*
 * fuzz_json.c: any bytes as a JSON text. Errors have a line and a column. An accepted text gives a
 * tree within the limits, whose members are sorted and found by name, and which stays the same when
 * written and read again.
 */
#include "fuzz.h"

#include "core/json.h"
#include "core/memory.h"

static void require_good(const iron__json *v, unsigned depth) {
    FUZZ_REQUIRE(v->kind <= IRON_JSON_OBJECT);
    if (v->kind == IRON_JSON_STRING)
        FUZZ_REQUIRE(strlen(v->text) == v->count);
    if (v->kind != IRON_JSON_ARRAY && v->kind != IRON_JSON_OBJECT)
        return;
    FUZZ_REQUIRE(depth < IRON_JSON_DEPTH_MAX);
    for (uint32_t k = 0; k < v->count; k++) {
        const iron__json *item = &v->items[k];

        FUZZ_REQUIRE((item->name != NULL) == (v->kind == IRON_JSON_OBJECT));
        if (item->name) {
            FUZZ_REQUIRE(k == 0 || strcmp(v->items[k - 1].name, item->name) < 0);
            FUZZ_REQUIRE(iron__json_member(v, item->name) == item);
        } else {
            FUZZ_REQUIRE(iron__json_at(v, k) == item);
        }
        require_good(item, depth + 1);
    }
}

static void write_string(FILE *to, const char *text) {
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(to, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, to);
    }
    fputc('"', to);
}

static void write_value(FILE *to, const iron__json *v) {
    static const char *const words[] = {"null", "false", "true"};

    if (v->name) {
        write_string(to, v->name);
        fputc(':', to);
    }
    if (v->kind <= IRON_JSON_TRUE) {
        fputs(words[v->kind], to);
    } else if (v->kind == IRON_JSON_NUMBER) {
        fprintf(to, "%.17g", v->number);
    } else if (v->kind == IRON_JSON_STRING) {
        write_string(to, v->text);
    } else {
        fputc(v->kind == IRON_JSON_ARRAY ? '[' : '{', to);
        for (uint32_t k = 0; k < v->count; k++) {
            if (k)
                fputc(',', to);
            write_value(to, &v->items[k]);
        }
        fputc(v->kind == IRON_JSON_ARRAY ? ']' : '}', to);
    }
}

static void require_same(const iron__json *a, const iron__json *b) {
    FUZZ_REQUIRE(a->kind == b->kind && a->count == b->count && !a->name == !b->name);
    FUZZ_REQUIRE(!a->name || strcmp(a->name, b->name) == 0);
    if (a->kind == IRON_JSON_NUMBER)
        FUZZ_REQUIRE(a->number == b->number);
    if (a->kind == IRON_JSON_STRING)
        FUZZ_REQUIRE(strcmp(a->text, b->text) == 0);
    if (a->kind == IRON_JSON_ARRAY || a->kind == IRON_JSON_OBJECT)
        for (uint32_t k = 0; k < a->count; k++)
            require_same(&a->items[k], &b->items[k]);
}

static void require_round_trip(const iron__json *root) {
    const iron__json *again = NULL;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    iron_error err;

    FUZZ_REQUIRE(to);
    write_value(to, root);
    FUZZ_REQUIRE(fclose(to) == 0);
    FUZZ_REQUIRE(iron__json_parse(text, length, iron__allocator_default(), &again, &err) ==
                 IRON_OK);
    require_same(root, again);
    iron__json_destroy(iron__allocator_default(), again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_copy(data, size);
    const iron__json *root = NULL;
    iron_error err;

    if (fuzz_refused(iron__json_parse(text, size, iron__allocator_default(), &root, &err), &err)) {
        FUZZ_REQUIRE(!root && err.status == IRON_E_FORMAT);
        FUZZ_REQUIRE(strncmp(err.text, "line ", 5) == 0);
    } else {
        memset(text, '#', size); /* the tree does not need it */
        require_good(root, 0);
        require_round_trip(root);
    }
    iron__json_destroy(iron__allocator_default(), root);
    free(text);
    return 0;
}
