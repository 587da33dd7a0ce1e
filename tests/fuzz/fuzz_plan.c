/* SPDX-License-Identifier: MIT */
/*
 * fuzz_plan.c: any bytes as the body of POST /v1/engines. A refused body has a problem kind and a
 * message. An accepted plan is within all ranges and stays the same when written as JSON and read
 * again.
 */
#include "fuzz.h"

#include "core/memory.h"
#include "server/route_engines.c"

static iron_status parse_plan(const char *text, size_t bytes, iron__store_plan *plan,
                              const char **kind, iron_error *err) {
    reader r = {.plan = plan, .kind = "bad-json"};
    const iron__json *root = NULL;
    iron_status status;

    iron__store_plan_init(plan);
    status = iron__json_parse(text, bytes, iron__allocator_default(), &root, err);
    if (status == IRON_OK)
        status = read_plan(root, &r, err);
    iron__json_destroy(iron__allocator_default(), root);
    *kind = r.kind;
    return status;
}

static void require_in_range(const iron__store_plan *p) {
    FUZZ_REQUIRE(iron__engine_name_is_valid(p->name));
    FUZZ_REQUIRE(p->nodes >= 1 && p->nodes <= UINT64_C(1) << 20);
    FUZZ_REQUIRE(p->vocab >= 2 && p->vocab <= UINT64_C(1) << 31);
    FUZZ_REQUIRE(p->batch >= 1 && p->batch < UINT64_C(1) << 53);
    FUZZ_REQUIRE(p->positions == IRON_POSITIONS_STREAM || p->positions == IRON_POSITIONS_BATCH);
    FUZZ_REQUIRE(p->lattice_count == 0 || (p->lattice_count >= 2 && p->lattice_count <= 64));
    for (uint32_t k = 0; k < p->lattice_count; k++) {
        FUZZ_REQUIRE(p->lattice[k] >= 1 && p->lattice[k] <= 65535);
        FUZZ_REQUIRE(k == 0 || p->lattice[k - 1] < p->lattice[k]);
    }
    FUZZ_REQUIRE(memchr(p->mode, '\0', sizeof p->mode) && p->mode[0]);
    FUZZ_REQUIRE(memchr(p->backend, '\0', sizeof p->backend) && p->backend[0]);
}

static char *write_plan(const iron__store_plan *p, size_t *bytes) {
    char *text = NULL;
    iron_json_writer j = {.to = open_memstream(&text, bytes)};

    FUZZ_REQUIRE(j.to);
    iron_json_open(&j, NULL, '{');
    iron_json_text(&j, "name", p->name);
    iron_json_number(&j, "nodes", p->nodes);
    iron_json_number(&j, "vocab", p->vocab);
    iron_json_number(&j, "batch", p->batch);
    iron_json_text(&j, "positions", p->positions ? "batch" : "stream");
    if (p->lattice_count > 0) {
        iron_json_open(&j, "lattice", '[');
        for (uint32_t k = 0; k < p->lattice_count; k++)
            iron_json_number(&j, NULL, p->lattice[k]);
        iron_json_close(&j, ']');
    }
    iron_json_text(&j, "mode", p->mode);
    iron_json_text(&j, "backend", p->backend);
    iron_json_number(&j, "device", p->device);
    iron_json_close(&j, '}');
    FUZZ_REQUIRE(fclose(j.to) == 0);
    return text;
}

static void require_same_plan(const iron__store_plan *a, const iron__store_plan *b) {
    FUZZ_REQUIRE(strcmp(a->name, b->name) == 0);
    FUZZ_REQUIRE(a->nodes == b->nodes && a->vocab == b->vocab && a->batch == b->batch);
    FUZZ_REQUIRE(a->positions == b->positions && a->device == b->device);
    FUZZ_REQUIRE(a->lattice_count == b->lattice_count);
    FUZZ_REQUIRE(memcmp(a->lattice, b->lattice, a->lattice_count * sizeof a->lattice[0]) == 0);
    FUZZ_REQUIRE(strcmp(a->mode, b->mode) == 0 && strcmp(a->backend, b->backend) == 0);
}

static void require_round_trip(const iron__store_plan *plan) {
    size_t bytes = 0;
    char *text = write_plan(plan, &bytes);
    iron__store_plan again;
    const char *kind = NULL;
    iron_error err;

    FUZZ_REQUIRE(parse_plan(text, bytes, &again, &kind, &err) == IRON_OK);
    require_same_plan(plan, &again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_copy(data, size);
    const char *kind = NULL;
    iron__store_plan plan;
    iron_error err;

    if (fuzz_refused(parse_plan(text, size, &plan, &kind, &err), &err)) {
        FUZZ_REQUIRE(strcmp(kind, "bad-json") == 0 || strcmp(kind, "bad-name") == 0 ||
                     strcmp(kind, "bad-configuration") == 0);
    } else {
        require_in_range(&plan);
        require_round_trip(&plan);
    }
    free(text);
    return 0;
}
