/* SPDX-License-Identifier: MIT */
/*
 * energy.c: the energy that a row takes per byte, from the counters of NVML (a whole NVIDIA card)
 * or RAPL (whole processor packages and their memory, in Linux's powercap folder).
 *
 * Counters are updated now and then: NVML's every 20 to 100 ms, RAPL's every millisecond. Samples
 * are shorter and take turns with other rows', so their energy cannot be told apart. Therefore a
 * row runs on its own after the samples: batch after batch of passes, with a reading after each,
 * from one change of the counter to a later one. Each change happened at some time since the
 * reading before, or since the counter's last update if that is shorter. When both of these gaps
 * together are 4 % of the time between the changes or less, the energy between them is that of the
 * passes between them. A row for which that takes longer than its share of the time has no figure.
 *
 * What else the card or the packages do at the same time is counted too, and idle power always is.
 */
#include "arena/arena_internal.h"
#include "core/clock.h"

#include <dirent.h>

#define BATCH_MS    10.0
#define PASSES_MAX  1000.0
#define GAPS        0.04 /* of the time between the changes */
#define CHANGES_MIN 4u   /* of the counter */

#define NVML_UPDATE_MS 100.0
#define RAPL_UPDATE_MS 2.0

static bool read_card(iron__energy_meter *m, iron__energy_reading *now) {
    if (iron__gpu_clocks_read(m->gpu, &now->clocks, NULL) != IRON_OK || !now->clocks.energy_mj)
        return false;
    now->ms = (double)iron__clock_ns() * 1e-6;
    now->joules = (double)now->clocks.energy_mj * 1e-3;
    return true;
}

/* The first line of a file of a domain; "" if it cannot be read. */
typedef struct line {
    char text[64];
} line;

static line read_line(const iron__rapl_domain *d, const char *name) {
    char path[sizeof d->path + 32];
    line l = {""};
    FILE *file;

    snprintf(path, sizeof path, "%.199s/%.24s", d->path, name);
    file = fopen(path, "re");
    if (!file || !fgets(l.text, sizeof l.text, file))
        l.text[0] = '\0';
    if (file)
        fclose(file);
    l.text[strcspn(l.text, "\n")] = '\0';
    return l;
}

static bool read_number(const iron__rapl_domain *d, const char *name, uint64_t *value) {
    line l = read_line(d, name);

    *value = strtoull(l.text, NULL, 10);
    return l.text[0] >= '0' && l.text[0] <= '9';
}

/* A counter that is smaller than before has started again at 0. */
static bool read_packages(iron__energy_meter *m, iron__energy_reading *now) {
    uint64_t value = 0;

    for (iron__rapl_domain *d = m->domains; d < m->domains + m->domain_count; d++) {
        if (!read_number(d, "energy_uj", &value))
            return false;
        m->joules +=
            1e-6 * (double)(value >= d->last ? value - d->last : value + d->range - d->last);
        d->last = value;
    }
    *now = (iron__energy_reading){.joules = m->joules, .ms = (double)iron__clock_ns() * 1e-6};
    return true;
}

/* Packages, and the memory of each: cores are a part of their package, psys has it as a part, and
 * intel-rapl-mmio:0 is the same as intel-rapl:0. All must be readable: most systems let only root
 * read them. */
static bool find_packages(iron__energy_meter *m, const char *root) {
    DIR *folders = opendir(root);
    const struct dirent *entry;
    bool is_readable = true;

    while (folders && is_readable && (entry = readdir(folders))) {
        iron__rapl_domain d = {.last = 0};
        line name;

        if (strncmp(entry->d_name, "intel-rapl:", strlen("intel-rapl:")) != 0 ||
            snprintf(d.path, sizeof d.path, "%s/%s", root, entry->d_name) >= (int)sizeof d.path)
            continue;
        name = read_line(&d, "name");
        if (strncmp(name.text, "package-", strlen("package-")) != 0 &&
            strcmp(name.text, "dram") != 0)
            continue;
        is_readable = m->domain_count < IRON_RAPL_DOMAINS &&
                      read_number(&d, "energy_uj", &d.last) &&
                      read_number(&d, "max_energy_range_uj", &d.range);
        if (is_readable)
            m->domains[m->domain_count++] = d;
    }
    if (folders)
        closedir(folders);
    return is_readable && m->domain_count > 0;
}

iron__energy_meter iron__energy_meter_open(iron__gpu_device *gpu) {
    const char *root = secure_getenv("IRON_POWERCAP");
    iron__energy_meter m = {.gpu = gpu};
    iron__energy_reading now;

    if (gpu && read_card(&m, &now)) {
        m.source = "nvml";
        m.read = read_card;
        m.update_ms = NVML_UPDATE_MS;
    } else if (!gpu && find_packages(&m, root && root[0] ? root : "/sys/class/powercap")) {
        m.source = "rapl";
        m.read = read_packages;
        m.update_ms = RAPL_UPDATE_MS;
    }
    return m;
}

/* What the clocks were while the row ran: the lowest of the cores, the highest temperature. */
static void note_clocks(iron__gpu_clocks *seen, const iron__gpu_clocks *now) {
    iron__gpu_clocks before = *seen;

    *seen = *now;
    if (before.core_mhz && before.core_mhz < now->core_mhz)
        seen->core_mhz = before.core_mhz;
    if (before.celsius > now->celsius)
        seen->celsius = before.celsius;
}

static double smaller(double a, double b) { return a < b ? a : b; }

iron_status iron__energy_measure(iron__energy_meter *m, iron__race_contender *c, double pass_ms,
                                 double bytes, double limit_ms, iron__energy *out,
                                 iron_error *err) {
    uint32_t passes = (uint32_t)smaller(pass_ms > 0 ? 1 + BATCH_MS / pass_ms : 1, PASSES_MAX);
    double least = 2 * smaller(passes * pass_ms, m->update_ms) / GAPS, limit, ms, gaps[2];
    iron__energy_reading last, first = {0}, now = {0};
    double done = 0, first_done = 0;
    uint32_t changes = 0;

    *out = (iron__energy){.source = NULL};
    if (limit_ms < least || !m->read(m, &last))
        return IRON_OK;
    limit = last.ms + limit_ms;
    do {
        IRON_TRY(c->ops->time(c, IRON_SCOPE_KERNEL, false, passes, &ms, err));
        if (!m->read(m, &now))
            return IRON_OK;
        note_clocks(&out->clocks, &now.clocks);
        if (now.clocks.is_throttled)
            return IRON_OK;
        done += passes;
        if (now.joules > last.joules) {
            gaps[changes > 0] = smaller(now.ms - last.ms, m->update_ms);
            if (changes++ == 0) {
                first = now;
                first_done = done;
            }
            if (changes >= CHANGES_MIN && gaps[0] + gaps[1] <= GAPS * (now.ms - first.ms)) {
                out->source = m->source;
                out->watts = (now.joules - first.joules) / (now.ms - first.ms) * 1e3;
                out->joules_per_gb =
                    (now.joules - first.joules) / ((done - first_done) * bytes * 1e-9);
                return IRON_OK;
            }
        }
        last = now;
    } while (now.ms < limit);
    return IRON_OK;
}
