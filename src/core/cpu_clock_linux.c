/* SPDX-License-Identifier: MIT */
/*
 * cpu_clock_linux.c: reads the clock from cpufreq, whose policies stand for CPUs that share one,
 * and thermal throttling from the counters of each CPU, its core's and its package's. A package's
 * events are counted once for each of its CPUs, which does no harm: whoever asks compares two sums.
 *
 *   ROOT/cpufreq/policyN/scaling_cur_freq                            kHz
 *   ROOT/cpuN/thermal_throttle/{core,package}_throttle_count
 */
#include "core/cpu_clock_linux.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024

/* The number that a small file holds; 0 if there is none. */
static uint64_t read_number(const char *path) {
    FILE *file = fopen(path, "re");
    char line[32];
    uint64_t number = 0;

    if (!file)
        return 0;
    if (fgets(line, sizeof line, file) && isdigit((unsigned char)line[0]))
        number = strtoull(line, NULL, 10);
    fclose(file);
    return number;
}

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t sum(uint64_t a, uint64_t b) { return a + b; }

/* Joins the numbers of `file` in every folder of `root` that is named `prefix` and digits. */
static uint64_t gather(const char *root, const char *prefix, const char *file,
                       uint64_t (*join)(uint64_t, uint64_t)) {
    DIR *folder = opendir(root);
    size_t length = strlen(prefix);
    uint64_t result = 0;
    struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        char path[PATH_BYTES];

        if (strncmp(entry->d_name, prefix, length) != 0 ||
            !isdigit((unsigned char)entry->d_name[length]))
            continue;
        snprintf(path, sizeof path, "%.500s/%s/%s", root, entry->d_name, file);
        result = join(result, read_number(path));
    }
    if (folder)
        closedir(folder);
    return result;
}

uint32_t iron__cpu_clock_mhz(const char *root) {
    char policies[PATH_BYTES];

    snprintf(policies, sizeof policies, "%.500s/cpufreq", root);
    return (uint32_t)(gather(policies, "policy", "scaling_cur_freq", greater) / 1000);
}

uint64_t iron__cpu_throttle_count(const char *root) {
    return gather(root, "cpu", "thermal_throttle/core_throttle_count", sum) +
           gather(root, "cpu", "thermal_throttle/package_throttle_count", sum);
}
