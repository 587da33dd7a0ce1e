/* SPDX-License-Identifier: MIT */
/*
 * fuzz_plan.c: any bytes as the body of POST /v1/engines. What is refused has a kind of problem and
 * a sentence. What is accepted is within all ranges and, written out as JSON and read again, is the
 * same plan.
 */
#include "fuzz.h"

#include "core/json_write.h"
#include "server/route_plan.h"

static void require_in_range(const iron__plan *p) {
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

static char *write_plan(const iron__plan *p, size_t *bytes) {
    char *text = NULL;
    iron__json_writer j = {.to = open_memstream(&text, bytes)};

    FUZZ_REQUIRE(j.to);
    iron__json_write_open(&j, NULL, '{');
    iron__json_write_text(&j, "name", p->name);
    iron__json_write_whole(&j, "nodes", p->nodes);
    iron__json_write_whole(&j, "vocab", p->vocab);
    iron__json_write_whole(&j, "batch", p->batch);
    iron__json_write_text(&j, "positions", p->positions ? "batch" : "stream");
    if (p->lattice_count > 0) {
        iron__json_write_open(&j, "lattice", '[');
        for (uint32_t k = 0; k < p->lattice_count; k++)
            iron__json_write_whole(&j, NULL, p->lattice[k]);
        iron__json_write_close(&j, ']');
    }
    iron__json_write_text(&j, "mode", p->mode);
    iron__json_write_text(&j, "backend", p->backend);
    iron__json_write_whole(&j, "device", p->device);
    iron__json_write_close(&j, '}');
    FUZZ_REQUIRE(fclose(j.to) == 0);
    return text;
}

static void require_same_plan(const iron__plan *a, const iron__plan *b) {
    FUZZ_REQUIRE(strcmp(a->name, b->name) == 0);
    FUZZ_REQUIRE(a->nodes == b->nodes && a->vocab == b->vocab && a->batch == b->batch);
    FUZZ_REQUIRE(a->positions == b->positions && a->device == b->device);
    FUZZ_REQUIRE(a->lattice_count == b->lattice_count);
    FUZZ_REQUIRE(memcmp(a->lattice, b->lattice, a->lattice_count * sizeof a->lattice[0]) == 0);
    FUZZ_REQUIRE(strcmp(a->mode, b->mode) == 0 && strcmp(a->backend, b->backend) == 0);
}

static void require_round_trip(const iron__plan *plan) {
    size_t bytes = 0;
    char *text = write_plan(plan, &bytes);
    iron__plan again;
    const char *kind = NULL;
    iron_error err;

    FUZZ_REQUIRE(iron__plan_parse(text, bytes, &again, &kind, &err) == IRON_OK);
    require_same_plan(plan, &again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_copy(data, size);
    const char *kind = NULL;
    iron__plan plan;
    iron_error err;

    if (fuzz_refused(iron__plan_parse(text, size, &plan, &kind, &err), &err)) {
        FUZZ_REQUIRE(strcmp(kind, "bad-json") == 0 || strcmp(kind, "bad-name") == 0 ||
                     strcmp(kind, "bad-configuration") == 0);
    } else {
        require_in_range(&plan);
        require_round_trip(&plan);
    }
    free(text);
    return 0;
}
