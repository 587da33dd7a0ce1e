/* SPDX-License-Identifier: MIT */
/*
 * A program that is no part of the tree: all it knows of iron is what was installed. It runs a
 * golden case and says whether the library it was linked with gives the golden state.
 * scripts/check-install builds it by pkg-config, shared and static, and by CMake's find_package.
 */
#include <iron/iron.h>

#include <inttypes.h>
#include <stdio.h>

#define TOKENS       1000
#define GOLDEN_STATE UINT64_C(0x90acbc06d0a45d05) /* golden case gen-small */

static iron_status run(iron_engine **engine, iron_report *report, iron_error *err) {
    static uint32_t tokens[TOKENS];
    iron_config config;
    iron_status status;

    iron_config_init(&config);
    config.nodes = 64;
    config.batch = 64;
    if ((status = iron_generate(1, config.vocab, 0, tokens, TOKENS, err)) ||
        (status = iron_engine_create(&config, engine, err)) ||
        (status = iron_engine_feed(*engine, tokens, TOKENS, err)) ||
        (status = iron_engine_end_batch(*engine, err)))
        return status;
    return iron_engine_report(*engine, report, err);
}

int main(void) {
    iron_report report = {.struct_size = sizeof report};
    iron_engine *engine = NULL;
    iron_error err = {IRON_OK, 0, ""};
    iron_status status = run(&engine, &report, &err);

    iron_engine_destroy(engine);
    if (status != IRON_OK) {
        fprintf(stderr, "consumer: %s\n", err.text);
        return iron_status_exit_code(status);
    }
    printf("iron %s: state %016" PRIx64 "\n", iron_version(), report.state);
    return report.state == GOLDEN_STATE ? 0 : 1;
}
