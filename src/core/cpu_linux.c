/* SPDX-License-Identifier: MIT */
/*
 * cpu_linux.c: features, name, caches and clock of the processor. Features come from the compiler's
 * builtins, which read CPUID and, for AVX, XGETBV (whether the operating system saves the
 * registers); the rest comes from /proc and /sys. What Linux does not report is 0 or "unknown".
 */
#include "core/cpu.h"

#include "core/fail.h"
#include "core/number.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__AVX__)
#error "build the dispatcher for the baseline processor: vector files get their flags one by one"
#endif

#define CPU_SETS_MAX 8192
#define CACHES       "/sys/devices/system/cpu/cpu%u/cache/index%d/%s"
#define PATH_BYTES   1024

/* Assumed if the system reports no third-level cache. */
#define UNKNOWN_CACHE_BYTES (UINT64_C(32) << 20)

#if defined(__aarch64__)

/* Advanced SIMD is part of the 64-bit Arm baseline. */
uint32_t iron__cpu_features(void) { return IRON_CPU_NEON; }

#elif defined(__x86_64__)

uint32_t iron__cpu_features(void) {
    uint32_t features = 0;

    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        features |= IRON_CPU_AVX2;
    if (__builtin_cpu_supports("fma"))
        features |= IRON_CPU_FMA;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        features |= IRON_CPU_AVX512;
    return features;
}

#else

uint32_t iron__cpu_features(void) { return 0; }

#endif

uint32_t iron__cpu_threads(void) {
    cpu_set_t *set = CPU_ALLOC(CPU_SETS_MAX);
    size_t bytes = CPU_ALLOC_SIZE(CPU_SETS_MAX);
    int count = 0;

    if (set && sched_getaffinity(0, bytes, set) == 0)
        count = CPU_COUNT_S(bytes, set);
    if (set)
        CPU_FREE(set);
    return count > 0 ? (uint32_t)count : 1;
}

/* Reads the first line of a small file; "" on failure. */
static void read_line(const char *path, char *line, size_t size) {
    FILE *file = fopen(path, "re");

    line[0] = '\0';
    if (!file)
        return;
    if (!fgets(line, (int)size, file))
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    fclose(file);
}

static void read_cache_field(unsigned cpu, int index, const char *field, char line[64]) {
    char path[128];

    snprintf(path, sizeof path, CACHES, cpu, index, field);
    read_line(path, line, 64);
}

static uint64_t cache_bytes(unsigned cpu, int index) {
    char line[64], *unit = NULL;
    uint64_t value;

    read_cache_field(cpu, index, "size", line);
    value = strtoull(line, &unit, 10);
    return value * (*unit == 'K' ? 1024 : *unit == 'M' ? 1024 * 1024 : 1);
}

/* Each cache is counted at the first CPU that shares it: processors with several dies have several
 * caches. */
uint64_t iron__cpu_last_cache_bytes(void) {
    uint64_t total = 0;

    for (unsigned cpu = 0; cpu < CPU_SETS_MAX; cpu++) {
        char shared[64];

        read_cache_field(cpu, 3, "shared_cpu_list", shared);
        if (shared[0] == '\0')
            break;
        if (strtoul(shared, NULL, 10) == cpu)
            total += cache_bytes(cpu, 3);
    }
    return total ? total : UNKNOWN_CACHE_BYTES;
}

/* x86 kernels print a "model name"; Arm kernels print numbers, so the names are here. */
static const char *arm_part_name(unsigned long part) {
    static const struct {
        unsigned part;
        const char *name;
    } parts[] = {
        {0xd0c, "Arm Neoverse N1"}, {0xd40, "Arm Neoverse V1"}, {0xd49, "Arm Neoverse N2"},
        {0xd4f, "Arm Neoverse V2"}, {0xd84, "Arm Neoverse V3"}, {0xd8e, "Arm Neoverse N3"},
        {0xd08, "Arm Cortex-A72"},  {0xd0b, "Arm Cortex-A76"},
    };

    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
        if (parts[k].part == part)
            return parts[k].name;
    return NULL;
}

void iron__cpu_name(char *name, size_t size) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(name, size, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');

        line[strcspn(line, "\n")] = '\0';
        if (!colon)
            continue;
        if (strncmp(line, "model name", 10) == 0) {
            snprintf(name, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
            break;
        }
        if (strncmp(line, "CPU part", 8) == 0) {
            unsigned long part = strtoul(colon + 1, NULL, 16);
            const char *known = arm_part_name(part);

            if (known)
                snprintf(name, size, "%s", known);
            else
                snprintf(name, size, "Arm part 0x%lx", part);
            break;
        }
    }
    if (file)
        fclose(file);
}

iron_status iron_cpu_describe(iron_cpu_info *info, iron_error *err) {
    uint32_t features = iron__cpu_features();

    IRON_FAIL_IF(!info || info->struct_size != sizeof *info, err, IRON_E_ARG,
                 "iron_cpu_info.struct_size is not %zu; set it to sizeof", sizeof *info);
    *info = (iron_cpu_info){.struct_size = sizeof *info};
    info->threads = iron__cpu_threads();
    info->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    for (int index = 0; index < 8; index++) {
        char level[64], type[64];

        read_cache_field(0, index, "level", level);
        read_cache_field(0, index, "type", type);
        if (level[0] == '1' && strcmp(type, "Instruction") != 0)
            info->l1d_bytes = cache_bytes(0, index);
        else if (level[0] == '2')
            info->l2_bytes = cache_bytes(0, index);
        else if (level[0] == '3')
            info->l3_bytes = cache_bytes(0, index);
    }
    iron__cpu_name(info->name, sizeof info->name);
    snprintf(info->features, sizeof info->features, "%s%s%s",
             features & IRON_CPU_NEON ? "neon " : "", features & IRON_CPU_AVX2 ? "avx2 " : "",
             features & IRON_CPU_AVX512 ? "avx512 " : "");
    if (info->features[0])
        info->features[strlen(info->features) - 1] = '\0';
    return IRON_OK;
}

static uint64_t sum(uint64_t a, uint64_t b) { return a + b; }

/* Combines the numbers in root/prefixN/file for every number N. */
static uint64_t gather(const char *root, const char *prefix, const char *file,
                       uint64_t (*join)(uint64_t, uint64_t)) {
    DIR *folder = opendir(root);
    size_t length = strlen(prefix);
    uint64_t result = 0;
    struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        char path[PATH_BYTES], line[32];

        if (strncmp(entry->d_name, prefix, length) != 0 ||
            !isdigit((unsigned char)entry->d_name[length]))
            continue;
        snprintf(path, sizeof path, "%.500s/%s/%s", root, entry->d_name, file);
        read_line(path, line, sizeof line);
        result = join(result, isdigit((unsigned char)line[0]) ? strtoull(line, NULL, 10) : 0);
    }
    if (folder)
        closedir(folder);
    return result;
}

iron__cpu_clock iron__cpu_clock_read(const char *root) {
    char policies[PATH_BYTES];
    iron__cpu_clock clock;

    /* Each cpufreq policy is a set of CPUs that share a clock. */
    snprintf(policies, sizeof policies, "%.500s/cpufreq", root);
    clock.mhz = (uint32_t)(gather(policies, "policy", "scaling_cur_freq", iron__max) / 1000);
    /* Package events are counted once for each CPU of the package. That does not matter, because
     * callers only compare two sums. */
    clock.throttle_count = gather(root, "cpu", "thermal_throttle/core_throttle_count", sum) +
                           gather(root, "cpu", "thermal_throttle/package_throttle_count", sum);
    return clock;
}
