/* SPDX-License-Identifier: MIT */
/* process.c: see process.h. From /proc; where there is none, little is known. */
#include "server/process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define STAT_START_FIELD 22 /* of /proc/self/stat, in ticks since the machine was started */

static double seconds_of(clockid_t clock) {
    struct timespec now;

    return clock_gettime(clock, &now) == 0 ? (double)now.tv_sec + (double)now.tv_nsec * 1e-9 : 0;
}

/* Without the one that looks. */
static uint64_t count_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (!folder)
        return 0;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count > 0 ? count - 1 : 0;
}

static void look_at_memory(iron__process *process) {
    FILE *from = fopen("/proc/self/statm", "re");
    unsigned long long all = 0, resident = 0;
    long page = sysconf(_SC_PAGESIZE);

    if (!from)
        return;
    if (fscanf(from, "%llu %llu", &all, &resident) == 2 && page > 0) { // NOLINT(cert-err34-c)
        process->virtual_bytes = all * (uint64_t)page;
        process->resident_bytes = resident * (uint64_t)page;
    }
    fclose(from);
}

void iron__process_look(iron__process *process) {
    struct rlimit limit;

    *process = (iron__process){.cpu_seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID),
                               .open_fds = count_descriptors()};
    look_at_memory(process);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        process->max_fds = limit.rlim_cur;
}

/* The name of a process stands in parentheses and may hold anything: fields count from the last. */
static double start_ticks(const char *stat) {
    const char *at = strrchr(stat, ')');
    unsigned long long ticks = 0;

    for (int field = 2; at && field < STAT_START_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, "%llu", &ticks) == 1 ? (double)ticks : 0; // NOLINT(cert-err34-c)
}

double iron__process_start(void) {
    FILE *from = fopen("/proc/self/stat", "re");
    long hertz = sysconf(_SC_CLK_TCK);
    char text[1024] = "";
    double ticks;

    if (!from)
        return 0;
    text[fread(text, 1, sizeof text - 1, from)] = '\0';
    fclose(from);
    ticks = start_ticks(text);
    if (ticks <= 0 || hertz <= 0)
        return 0;
    return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + ticks / (double)hertz;
}
