/* SPDX-License-Identifier: MIT */
/*
 * report_host.c: what a report says of the machine and the build, so that a figure can be
 * understood years later. The compiler, its flags and the commit come from the build
 * (CMakeLists.txt).
 */
#include "arena/arena.h"
#include "core/cpu.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#ifndef IRON_BUILD_COMPILER
#define IRON_BUILD_COMPILER "unknown"
#endif
#ifndef IRON_BUILD_FLAGS
#define IRON_BUILD_FLAGS ""
#endif
#ifndef IRON_BUILD_COMMIT
#define IRON_BUILD_COMMIT "unknown"
#endif

static void fill_features(char *text, size_t size) {
    uint32_t bits = iron__cpu_features();

    snprintf(text, size, "%s%s%s", bits & IRON_CPU_NEON ? "neon " : "",
             bits & IRON_CPU_AVX2 ? "avx2 " : "", bits & IRON_CPU_AVX512 ? "avx512 " : "");
    if (text[0])
        text[strlen(text) - 1] = '\0';
}

static void fill_system(iron__report_host *host) {
    struct utsname names;

    if (uname(&names) != 0)
        return;
    snprintf(host->name, sizeof host->name, "%.63s", names.nodename);
    snprintf(host->kernel, sizeof host->kernel, "%.30s %.40s %.20s", names.sysname, names.release,
             names.machine);
}

void iron__report_host_fill(iron__report_host *host) {
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    time_t now = time(NULL);
    struct tm utc;

    *host = (iron__report_host){.threads = iron__cpu_threads(),
                                .cache_bytes = iron__cpu_last_cache_bytes()};
    iron__cpu_name(host->cpu, sizeof host->cpu);
    fill_features(host->features, sizeof host->features);
    fill_system(host);
    if (iron_cpu_describe(&cpu, NULL) == IRON_OK)
        host->memory_bytes = cpu.memory_bytes;
    snprintf(host->compiler, sizeof host->compiler, "%s", IRON_BUILD_COMPILER);
    snprintf(host->flags, sizeof host->flags, "%s", IRON_BUILD_FLAGS);
    snprintf(host->commit, sizeof host->commit, "%s", IRON_BUILD_COMMIT);
    if (gmtime_r(&now, &utc))
        strftime(host->date, sizeof host->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
