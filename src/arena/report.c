/* SPDX-License-Identifier: MIT */
/*
 * report.c: everything that is printed: what there is to say about the ops, and the report of a
 * race as a JSON document, an HTML page, a table for a terminal, Markdown for a README or an issue,
 * and CSV.
 *
 * The ops: texts, sizes, axes and contenders. For the command, as the JSON of `iron arena --list
 * --json` (docs/techniques.md is made from it), and for the page of a report.
 *
 * JSON: docs/schema/arena-1.json describes it. The page draws from it, comparisons read it, people
 * keep it. Every key is in every object of its kind, so readers need not ask whether it is there
 * (params, scopes and kernels hold what applies). Text that does not apply is "", a figure that
 * does not apply or is unknown is null. All samples are kept: any other statistic can be computed
 * from them.
 *
 * The page needs no network: web/report/, embedded when iron was built, with the document where the
 * page wants its data, a second one with the texts of the ops and, after a comparison, a third one
 * (compare.c). They go into <script type="application/json">, which a browser reads up to the first
 * `</script`: the writer leaves no `<` in them, so no name and no reason can end one.
 *
 * Names of devices come from drivers, reasons from drivers and compilers: both may contain line
 * breaks and terminal sequences. Table and Markdown pass them through plain(); CSV keeps them whole
 * and quotes them by its own rules.
 */
#include "arena/arena_internal.h"
#include "core/fail.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>

typedef void report_printer(const iron__report *report, FILE *to);

/* Writes a document to a file, whole or not at all; "-" is standard output. */
static iron_status write_whole(const char *path, report_printer *print, const iron__report *report,
                               iron_error *err) {
    iron_output *output = NULL;
    iron_status status = IRON_OK;
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    IRON_FAIL_IF(!to, err, IRON_E_NOMEM, "out of memory for a report");
    print(report, to);
    if (fclose(to) != 0)
        status = iron__no_memory(err, "a report");
    else if (strcmp(path, "-") == 0)
        fwrite(text, 1, bytes, stdout); /* the caller checks stdout for errors */
    else
        status = iron_output_open(path, &output, err);
    if (output) {
        status = iron_output_write(output, text, bytes, err);
        if (status == IRON_OK)
            status = iron_output_commit(output, err);
        else
            iron_output_abandon(output);
    }
    free(text);
    return status;
}

/* The members name, text, name, text, ... NULL of an object. */
static void __attribute__((sentinel)) put_text_members(iron_json_writer *j, ...) {
    va_list members;

    va_start(members, j);
    for (const char *name; (name = va_arg(members, const char *));)
        iron_json_text(j, name, va_arg(members, const char *));
    va_end(members);
}
#define put_texts(...) put_text_members(__VA_ARGS__, (const char *)NULL)

const char *iron_arena_op_at(size_t index) {
    return iron__op_at(index) ? iron__op_at(index)->name : NULL;
}

const char *iron_arena_note_title(iron_note note) {
    static const char *const titles[] = {
        "", "", "Bytes moved", "When it does not pay", "In iron's own kernels", "Measured"};

    return note < COUNT(titles) ? titles[note] : NULL;
}

static const char *op_note(const iron__op *op, iron_note note) {
    const char *const notes[] = {op->contract, op->why,  op->traffic,
                                 op->unless,   op->used, iron__op_measured(op->name)};

    return note < COUNT(notes) ? notes[note] : NULL;
}

const char *iron_arena_note(const char *op, iron_note note) {
    return iron__op_find(op) ? op_note(iron__op_find(op), note) : NULL;
}

static bool op_axis_at(const iron__op *op, size_t index, iron_arena_axis *axis) {
    const iron__axis *of;

    if (!op || index >= op->axis_count || axis->struct_size != sizeof *axis)
        return false;
    of = &op->axes[index];
    axis->name = of->name;
    axis->about = of->about;
    axis->values[0] = '\0'; /* "uniform, zipf, sorted", "1, 2, 4" */
    for (size_t k = 0; k < of->count; k++)
        iron__append(axis->values, sizeof axis->values, "%s%s", k > 0 ? ", " : "",
                     of->words ? of->words[k] : iron__param_number(of->numbers[k]).text);
    iron__axis_accepts(of, axis->takes, sizeof axis->takes);
    return true;
}

int iron_arena_axis_at(const char *op, size_t index, iron_arena_axis *axis) {
    return op_axis_at(iron__op_find(op), index, axis);
}

static const struct {
    uint32_t bit;
    const char *name;
} backends[] = {{IRON_ON_CPU, "cpu"}, {IRON_ON_CUDA, "cuda"}, {IRON_ON_OPENCL, "opencl"}};

#define BACKENDS (COUNT(backends))

static bool op_contender_at(const iron__op *op, size_t index, iron_arena_contender *contender) {
    iron__contender row;

    if (!op || contender->struct_size != sizeof *contender || !iron__op_contender(op, index, &row))
        return false;
    contender->name = row.name;
    contender->idea = row.idea;
    contender->beats = row.beats ? row.beats : "";
    contender->backends[0] = '\0';
    for (size_t k = 0; k < BACKENDS; k++)
        if (row.backends & backends[k].bit)
            iron__append(contender->backends, sizeof contender->backends, "%s%s",
                         contender->backends[0] ? ", " : "", backends[k].name);
    return true;
}

int iron_arena_contender_at(const char *op, size_t index, iron_arena_contender *contender) {
    return op_contender_at(iron__op_find(op), index, contender);
}

void iron_arena_sizes(const char *op, char *text, size_t size) {
    const iron__op *o = iron__op_find(op);
    const char *set = "";
    char shape[40];

    text[0] = '\0';
    for (size_t k = 0; o && k < o->size_count; k++) {
        const iron__size *s = &o->sizes[k];

        if (strcmp(set, s->set) != 0)
            iron__append(text, size, "%s%s:", k > 0 ? "\n" : "", s->set);
        set = s->set;
        iron__size_text(o, s->rows, s->cols, shape, sizeof shape);
        iron__append(text, size, " %s (%s)", s->name, shape);
    }
}

/* The ops of a report as a JSON array, for the page that shows it. */
static void put_ops(iron_json_writer *j, const iron__op *const *ops, size_t count) {
    iron_arena_axis axis = {.struct_size = sizeof axis};
    iron_arena_contender row = {.struct_size = sizeof row};

    iron_json_open(j, NULL, '[');
    for (size_t k = 0; k < count; k++) {
        iron_json_open(j, NULL, '{');
        iron_json_text(j, "op", ops[k]->name);
        iron_json_open(j, "notes", '[');
        for (iron_note note = 0; iron_arena_note_title(note); note++) {
            if (!op_note(ops[k], note))
                continue;
            iron_json_open(j, NULL, '{');
            put_texts(j, "title", iron_arena_note_title(note), "text", op_note(ops[k], note));
            iron_json_close(j, '}');
        }
        iron_json_close(j, ']');
        iron_json_open(j, "axes", '[');
        for (size_t a = 0; op_axis_at(ops[k], a, &axis); a++) {
            iron_json_open(j, NULL, '{');
            put_texts(j, "name", axis.name, "about", axis.about, "values", axis.values);
            iron_json_close(j, '}');
        }
        iron_json_close(j, ']');
        iron_json_open(j, "contenders", '[');
        for (size_t c = 0; op_contender_at(ops[k], c, &row); c++) {
            iron_json_open(j, NULL, '{');
            put_texts(j, "name", row.name, "backends", row.backends, "idea", row.idea, "beats",
                      row.beats);
            iron_json_close(j, '}');
        }
        iron_json_close(j, ']');
        iron_json_close(j, '}');
    }
    iron_json_close(j, ']');
}

static void put_elements(iron_json_writer *j, uint32_t elements) {
    iron_json_open(j, "dtypes", '[');
    for (uint32_t k = 0; k < IRON_ELEMENTS; k++)
        if (elements & IRON_BIT(k))
            iron_json_text(j, NULL, iron__element_name((iron__element)k));
    iron_json_close(j, ']');
}

static void print_registry(const iron__report *report, FILE *to) {
    iron_json_writer writer = {.to = to}, *j = &writer;
    const iron__op *op;
    iron__contender row;

    (void)report;
    iron_json_open(j, NULL, '{');
    iron_json_text(j, "schema", "iron.registry/1");
    iron_json_open(j, "ops", '[');
    for (size_t n = 0; (op = iron__op_at(n)); n++) {
        iron_json_open(j, NULL, '{');
        put_texts(j, "name", op->name, "contract", op->contract, "why", op->why, "traffic",
                  op->traffic, "unless", op->unless, "used", op->used, "measured",
                  iron__op_measured(op->name), "bound",
                  op->bound == IRON_BOUND_READ ? "read" : "copy", "usual_dtype",
                  iron__element_name(op->usual));
        put_elements(j, op->elements);
        iron_json_open(j, "baselines", '{');
        put_texts(j, "cpu", op->baselines[0], "gpu", op->baselines[1]);
        iron_json_close(j, '}');
        iron_json_open(j, "axes", '[');
        for (const iron__axis *axis = op->axes; axis < op->axes + op->axis_count; axis++) {
            iron_json_open(j, NULL, '{');
            put_texts(j, "name", axis->name, "about", axis->about);
            iron_json_open(j, "values", '[');
            for (size_t k = 0; k < axis->count; k++)
                if (axis->words)
                    iron_json_text(j, NULL, axis->words[k]);
                else
                    iron_json_real(j, NULL, axis->numbers[k]);
            iron_json_close(j, ']');
            iron_json_close(j, '}');
        }
        iron_json_close(j, ']');
        iron_json_open(j, "contenders", '[');
        for (size_t c = 0; iron__op_contender(op, c, &row); c++) {
            iron_json_open(j, NULL, '{');
            put_texts(j, "name", row.name, "idea", row.idea, "beats", row.beats);
            iron_json_open(j, "backends", '[');
            for (size_t k = 0; k < BACKENDS; k++)
                if (row.backends & backends[k].bit)
                    iron_json_text(j, NULL, backends[k].name);
            iron_json_close(j, ']');
            put_elements(j, row.elements ? row.elements : op->elements);
            iron_json_close(j, '}');
        }
        iron_json_close(j, ']');
        iron_json_close(j, '}');
    }
    iron_json_close(j, ']');
    iron_json_close(j, '}');
    iron_json_end(j);
}

iron_status iron_arena_registry(const char *path, iron_error *err) {
    return write_whole(path, print_registry, NULL, err);
}

/* Each kernel once: those of the answer, then those only seen in prepare. NULL past the last, and
 * where kernels is NULL. */
static const iron__gpu_launch_record *kernels_at(const iron__kernels *kernels, size_t index,
                                                 bool *is_prepare) {
    *is_prepare = kernels && index >= kernels->answer.count;
    if (kernels && !*is_prepare)
        return &kernels->answer.seen[index];
    for (size_t k = 0; kernels && k < kernels->prepare.count; k++) {
        size_t same = 0;

        while (same < kernels->answer.count &&
               strcmp(kernels->answer.seen[same].kernel, kernels->prepare.seen[k].kernel) != 0)
            same++;
        if (same == kernels->answer.count && index-- == kernels->answer.count)
            return &kernels->prepare.seen[k];
    }
    return NULL;
}

/* What a driver reports about a kernel; -1 where it reports nothing. A driver that reports
 * registers also reports spills and local memory: then 0 is a figure. */
enum { REGISTERS, LOCAL, SPILL, GROUPS, OCCUPANCY, KERNEL_FIGURES };
typedef struct kernel_figures {
    double at[KERNEL_FIGURES];
} kernel_figures;

static const char *const kernel_figure_names[KERNEL_FIGURES] = {
    "registers", "local_bytes", "spill_bytes", "groups_per_unit", "occupancy_percent"};

/* Takes NULL, too. */
static kernel_figures kernel_figures_of(const iron__gpu_launch_record *kernel) {
    const iron__gpu_resources none = {0}, *f = kernel ? &kernel->resources : &none;
    bool is_known = f->registers > 0;

    return (kernel_figures){{[REGISTERS] = is_known ? (double)f->registers : -1,
                             [LOCAL] = is_known || f->local_bytes > 0 ? (double)f->local_bytes : -1,
                             [SPILL] = is_known || f->spill_bytes > 0 ? (double)f->spill_bytes : -1,
                             [GROUPS] = f->groups > 0 ? (double)f->groups : -1,
                             [OCCUPANCY] = f->occupancy > 0 ? 100 * f->occupancy : -1}};
}

static const char *stop_name(iron__stop stop) {
    static const char *const names[] = {"", "precision", "time", "runs"};

    return names[stop];
}

/* 0 means unknown; what is not finite becomes null. */
static void put_known(iron_json_writer *j, const char *name, double value) {
    iron_json_real(j, name, value > 0 ? value : NAN);
}

/* The figures of the warm samples. */
static void put_figures(iron_json_writer *j, const iron__report_scope *scope) {
    const iron__statistics *times = &scope->warm;
    const iron__samples *s = scope->samples;

    iron_json_real(j, "median_ms", times->median);
    iron_json_real(j, "mean_ms", times->mean);
    iron_json_real(j, "min_ms", times->min);
    iron_json_real(j, "p95_ms", times->p95);
    iron_json_real(j, "noise_percent", times->count > 1 ? times->noise_percent : NAN);
    put_known(j, "gb_s", scope->gb_s);
    put_known(j, "percent_of_ceiling", scope->percent_of_ceiling);
    iron_json_open(j, "samples", '[');
    for (uint32_t k = 0; s && k < s->count; k++)
        iron_json_real(j, NULL, s->ms[k]);
    iron_json_close(j, ']');
    put_known(j, "low_ms", times->low); /* there is no interval below six samples */
    put_known(j, "high_ms", times->high);
    put_known(j, "coverage_percent", 100 * times->coverage);
    iron_json_real(j, "max_ms", times->max);
    iron_json_number(j, "count", times->count);
    iron_json_text(j, "stopped_by", s ? stop_name(s->stop) : "");
    iron_json_number(j, "passes", s ? s->passes : 0);
    iron_json_number(j, "dropped", s ? s->dropped : 0);
    put_known(j, "speedup", scope->speedup);
}

/* Facts about how a row was raced that do not apply are 0. */
static void put_params(iron_json_writer *j, const iron__report_row *row) {
    const struct {
        const char *name;
        uint32_t value;
    } facts[] = {{"nodes", row->nodes}, {"streams", row->streams}, {"threads", row->threads}};

    iron_json_open(j, "params", '{');
    if (row->vocab)
        iron_json_number(j, "vocab", row->vocab);
    for (const iron__param *p = row->params.list; p < row->params.list + row->params.count; p++) {
        if (p->word[0])
            iron_json_text(j, p->name, p->word);
        else if (p->number >= 0 && iron__number_is_whole(p->number))
            iron_json_number(j, p->name, (uint64_t)p->number);
        else
            iron_json_real(j, p->name, p->number);
    }
    for (size_t k = 0; k < COUNT(facts); k++)
        if (facts[k].value)
            iron_json_number(j, facts[k].name, facts[k].value);
    if (row->size_name[0])
        iron_json_text(j, "size_name", row->size_name);
    iron_json_close(j, '}');
}

static void put_row(iron_json_writer *j, const iron__report_row *row) {
    const iron__gpu_clocks *clocks = &row->energy.clocks;
    const iron__gpu_launch_record *kernel;
    bool is_prepare;

    iron_json_open(j, NULL, '{');
    put_texts(j, "op", row->op, "contender", row->contender, "backend", row->backend, "memory",
              row->memory, "device", row->device, "size", row->size, "dtype", row->dtype);
    put_params(j, row);
    iron_json_bool(j, "peer", row->is_peer);
    iron_json_number(j, "useful_bytes", row->useful_bytes);
    iron_json_bool(j, "cache_resident", row->is_cache_resident);
    put_texts(j, "status", iron__row_status_name(row->status), "reason", row->reason);
    iron_json_bool(j, "verified", row->is_verified);
    iron_json_text(j, "baseline", row->baseline);
    put_known(j, "speedup", row->status == IRON_ROW_OK ? row->speedup : 0);
    iron_json_open(j, "scopes", '{');
    for (iron__scope k = 0; k < IRON_SCOPES; k++) {
        const iron__report_scope *s = iron__row_scope(row, k);

        if (!s)
            continue;
        iron_json_open(j, iron__scope_name(k), '{');
        put_figures(j, s);
        if (s->cold.count > 0) { /* the same useful bytes, and the same ceiling */
            double share = s->gb_s > 0 ? s->percent_of_ceiling * s->cold_gb_s / s->gb_s : 0;

            iron_json_open(j, "cold", '{');
            put_figures(j, &(iron__report_scope){.warm = s->cold,
                                                 .samples = s->cold_samples,
                                                 .gb_s = s->cold_gb_s,
                                                 .percent_of_ceiling = share});
            iron_json_close(j, '}');
        }
        iron_json_close(j, '}');
    }
    iron_json_close(j, '}');
    iron_json_text(j, "idea", row->idea ? row->idea : "");
    put_known(j, "rank", row->rank);
    put_known(j, "operations", row->operations);
    put_known(j, "passes", row->passes);
    iron_json_bool(j, "outside", row->is_outside);
    iron_json_bool(j, "above_ceiling", row->is_above_ceiling);
    iron_json_open(j, "kernels", '[');
    for (size_t k = 0; (kernel = kernels_at(row->kernels, k, &is_prepare)); k++) {
        kernel_figures f = kernel_figures_of(kernel);

        iron_json_open(j, NULL, '{');
        iron_json_text(j, "name", kernel->kernel);
        iron_json_number(j, "groups", kernel->groups);
        iron_json_number(j, "threads", kernel->threads);
        for (size_t n = 0; n < KERNEL_FIGURES; n++)
            if (f.at[n] >= 0)
                iron_json_real(j, kernel_figure_names[n], f.at[n]);
        if (is_prepare)
            iron_json_bool(j, "prepare", true);
        iron_json_close(j, '}');
    }
    iron_json_close(j, ']');
    if (row->energy.source) {
        iron_json_open(j, "energy", '{');
        iron_json_real(j, "joules_per_gb", row->energy.joules_per_gb);
        iron_json_real(j, "watts", row->energy.watts);
        iron_json_text(j, "source", row->energy.source);
        iron_json_close(j, '}');
    } else {
        iron_json_null(j, "energy");
    }
    if (clocks->core_mhz || clocks->memory_mhz) {
        iron_json_open(j, "clocks", '{');
        put_known(j, "core_mhz", clocks->core_mhz);
        put_known(j, "memory_mhz", clocks->memory_mhz);
        put_known(j, "celsius", clocks->celsius);
        iron_json_text(j, "reasons", clocks->reasons);
        iron_json_close(j, '}');
    } else {
        iron_json_null(j, "clocks");
    }
    iron_json_close(j, '}');
}

static void put_document(const iron__report *report, iron_json_writer *j) {
    const iron__report_host *host = &report->host;
    const iron__own_data *own = report->own;

    iron_json_open(j, NULL, '{');
    put_texts(j, "schema", "iron.arena/1", "iron", report->version);
    iron_json_open(j, "host", '{');
    put_texts(j, "name", host->name, "cpu", host->cpu, "features", host->features);
    iron_json_number(j, "threads", host->threads);
    iron_json_number(j, "memory_bytes", host->memory_bytes);
    iron_json_number(j, "cache_bytes", host->cache_bytes);
    put_texts(j, "kernel", host->kernel, "compiler", host->compiler, "flags", host->flags, "commit",
              host->commit, "date", host->date, "command", report->command);
    iron_json_real(j, "seconds", report->seconds);
    iron_json_real(j, "ceiling_seconds", report->ceiling_seconds);
    iron_json_real(j, "race_seconds", report->race_seconds);
    iron_json_open(j, "remarks", '[');
    for (size_t k = 0; k < report->remark_count; k++)
        iron_json_text(j, NULL, report->remarks[k]);
    iron_json_close(j, ']');
    iron_json_close(j, '}');
    iron_json_open(j, "devices", '[');
    for (const iron__report_device *d = report->devices; d < report->devices + report->device_count;
         d++) {
        iron_json_open(j, NULL, '{');
        iron_json_text(j, "backend", d->backend);
        iron_json_number(j, "index", d->index);
        put_texts(j, "name", d->name, "driver", d->driver);
        iron_json_number(j, "units", d->units);
        iron_json_number(j, "memory_bytes", d->memory_bytes);
        iron_json_number(j, "cache_bytes", d->cache_bytes);
        iron_json_bool(j, "available", d->is_available);
        iron_json_text(j, "reason", d->reason);
        iron_json_open(j, "clocks", '{');
        put_known(j, "min_mhz", d->clock_min);
        put_known(j, "max_mhz", d->clock_max);
        put_known(j, "memory_mhz", d->memory_clock);
        iron_json_close(j, '}');
        iron_json_text(j, "throttle", d->throttle);
        put_known(j, "celsius", d->celsius);
        iron_json_close(j, '}');
    }
    iron_json_close(j, ']');
    iron_json_open(j, "ceilings", '[');
    for (const iron__report_ceiling *c = report->ceilings;
         c < report->ceilings + report->ceiling_count; c++) {
        iron_json_open(j, NULL, '{');
        put_texts(j, "backend", c->backend, "device", c->device, "name", c->name, "shape",
                  c->shape);
        iron_json_number(j, "bytes", c->bytes);
        iron_json_number(j, "measurements", c->measurements);
        iron_json_real(j, "low_gb_s", c->low_gb_s);
        put_known(j, "peak_gb_s", c->peak_gb_s);
        put_figures(j, &c->figures);
        iron_json_close(j, '}');
    }
    iron_json_close(j, ']');
    iron_json_open(j, "results", '[');
    for (size_t k = 0; k < report->row_count; k++)
        put_row(j, &report->rows[k]);
    iron_json_close(j, ']');
    if (own) {
        iron_json_open(j, "data", '{');
        put_texts(j, "file", own->file, "dtype", iron__element_name(own->data.element));
        iron_json_number(j, "tokens", own->data.count);
        iron_json_number(j, "file_tokens", own->total);
        iron_json_close(j, '}');
    } else {
        iron_json_null(j, "data");
    }
    iron_json_close(j, '}');
}

static void print_json(const iron__report *report, FILE *to) {
    iron_json_writer j = {.to = to};

    put_document(report, &j);
    iron_json_end(&j);
}

/* cmake/Embed.cmake makes it, and checks that it has each mark once, in this order. */
extern const char iron__report_page[];

static void print_html(const iron__report *report, FILE *to) {
    static const char *const marks[] = {"{{data}}", "{{ops}}", "{{comparison}}"};
    const char *at = iron__report_page;

    for (size_t k = 0; k < COUNT(marks); k++) {
        const char *mark = strstr(at, marks[k]);
        iron_json_writer j = {.to = to, .is_html = true};

        if (!mark) /* the build checks this */
            return;
        fwrite(at, 1, (size_t)(mark - at), to);
        at = mark + strlen(marks[k]);
        if (k == 0)
            put_document(report, &j);
        else if (k == 1)
            put_ops(&j, report->ops, report->op_count);
        else
            fputs(report->comparison ? report->comparison : "null", to);
    }
    fputs(at, to);
}

#define BAR_CELLS     8 /* as many as in bar()'s text */
#define NAME_MIN      12
#define PEER_MARK     '*'
#define RESIDENT_MARK '~'
#define ABOVE_MARK    '^'

/* A short text by value, so that it can be made in an argument list. Twice as long as a reason: a
 * reason still fits with every character escaped. */
typedef struct short_text {
    char text[512];
} short_text;

static short_text __attribute__((format(printf, 1, 2))) text_of(const char *format, ...) {
    short_text w;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(w.text, sizeof w.text, format, arguments);
    va_end(arguments);
    return w;
}

/* The text with blanks for control characters (U+0080 to U+009F are two bytes), and a backslash
 * before each character that is in `escape`. */
static short_text plain(const char *text, const char *escape) {
    const unsigned char *c = (const unsigned char *)text;
    short_text w;
    size_t used = 0;

    while (*c && used + 3 < sizeof w.text) {
        bool is_wide = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0;

        if (strchr(escape, *c))
            w.text[used++] = '\\';
        w.text[used++] = is_wide || *c < 0x20 || *c == 0x7F ? ' ' : (char)*c;
        c += is_wide ? 2 : 1;
    }
    w.text[used] = '\0';
    return w;
}

/* Columns that the text takes: characters, not bytes. */
static int columns_of(const char *text) {
    int columns = 0;

    for (; *text; text++)
        columns += ((unsigned char)*text & 0xC0) != 0x80;
    return columns;
}

/* The value with a fixed number of decimals and a unit; "" for zero and less. */
static short_text figure_of(double value, int decimals, const char *unit) {
    return value > 0 && value < 1e15 ? text_of("%.*f%s", decimals, value, unit) : (short_text){""};
}

/* Four significant digits, no exponent: "0.06104", "12.35", "4382"; "" for zero and less. */
static short_text figure(double value) {
    int decimals = 3;
    double at = value;

    while (at >= 10 && decimals > 0) {
        at /= 10;
        decimals--;
    }
    while (at > 0 && at < 1 && decimals < 9) {
        at *= 10;
        decimals++;
    }
    return figure_of(value, decimals, "");
}

/* "256 MiB", "1.5 GiB" */
static short_text bytes_text(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < COUNT(units)) {
        value /= 1024;
        unit++;
    }
    return text_of(value < 10 && unit > 0 ? "%.2g %s" : "%.0f %s", value, units[unit]);
}

/* The end " #1" of a device's name, which it has if several of its backend race; else "". */
static const char *device_number(const char *device) {
    const char *mark = strrchr(device, '#');

    return mark && mark > device && mark[1 + strspn(mark + 1, "0123456789")] == '\0' ? mark - 1
                                                                                     : "";
}

/* "atax.cuda.single-pass pinned"; no memory on the CPU. */
static short_text row_name(const iron__report_row *row) {
    bool is_host = strcmp(row->memory, "host") == 0;
    short_text w =
        text_of("%s.%s.%s%s%s%s", row->op, row->backend, row->contender, is_host ? "" : " ",
                is_host ? "" : row->memory, device_number(row->device));

    return plain(w.text, "");
}

/* "histogram 4294967296 (size:LARGE) u8, data zipf" */
static short_text group_title(const iron__report_row *row) {
    iron__params_line axes = iron__params_text(&row->params, true);
    short_text w = text_of(
        "%s %s%s%s%s %s%s%.300s", row->op, row->size, row->size_name[0] ? " (" : "", row->size_name,
        row->size_name[0] ? ")" : "", row->dtype, axes.text[0] ? ", " : "", axes.text);

    return plain(w.text, "");
}

/* "4 GiB of useful bytes; bins 256" */
static short_text group_facts(const iron__report_row *row) {
    iron__params_line facts = iron__params_text(&row->params, false);
    short_text w = text_of("%s of useful bytes%s", bytes_text(row->useful_bytes).text,
                           row->vocab || facts.text[0] ? "; " : "");

    if (row->vocab)
        iron__append(w.text, sizeof w.text, "vocab %u%s", row->vocab, facts.text[0] ? ", " : "");
    iron__append(w.text, sizeof w.text, "%.300s", facts.text);
    return plain(w.text, "");
}

/* "cuda 0: NVIDIA H200, driver 580, 132 units, 140 GiB, 1200 to 1980 MHz" */
static short_text device_text(const iron__report_device *d) {
    short_text w;

    if (!d->is_available)
        return text_of("%s %u: not raced: %s", d->backend, d->index, d->reason);
    w = text_of("%s %u: %s, %s%s%u units, %s", d->backend, d->index, d->name, d->driver,
                d->driver[0] ? ", " : "", d->units, bytes_text(d->memory_bytes).text);
    if (d->clock_max)
        iron__append(w.text, sizeof w.text, ", %u to %u MHz%s%s", d->clock_min, d->clock_max,
                     d->throttle[0] ? ", throttled: " : "", d->throttle);
    if (d->celsius)
        iron__append(w.text, sizeof w.text, ", up to %u °C", d->celsius);
    return w;
}

/* "data corpus.bin: the first 1000 of 2000 tokens, u16" */
static short_text data_text(const iron__own_data *own) {
    short_text w = text_of("data %.200s: ", own->file);

    if (own->data.count < own->total)
        iron__append(w.text, sizeof w.text, "the first %" PRIu64 " of ", own->data.count);
    iron__append(w.text, sizeof w.text, "%" PRIu64 " tokens, %s", own->total,
                 iron__element_name(own->data.element));
    return w;
}

/* Is the ceiling shown in the group's table? Only those of devices that race in it: their own
 * memory, and the fastest way to it. */
static bool group_has_ceiling(const iron__report *report, size_t first, size_t end,
                              const iron__report_ceiling *ceiling) {
    static const char *const shown[] = {"read", "write", "copy", "triad", "to_device_pinned"};
    bool is_shown = false;

    for (size_t k = 0; k < COUNT(shown); k++)
        is_shown |= strcmp(ceiling->name, shown[k]) == 0;
    for (size_t k = first; is_shown && k < end; k++)
        if (report->rows[k].status == IRON_ROW_OK &&
            strcmp(report->rows[k].backend, ceiling->backend) == 0 &&
            strcmp(report->rows[k].device, ceiling->device) == 0)
            return true;
    return false;
}

static uint64_t threads_of(const iron__gpu_launch_record *kernel) {
    return kernel->groups * kernel->threads;
}

/* The kernel that a row is about: of the answer's kernels the one with the most threads, the first
 * of equals; of the others where the answer has none. NULL: none was seen. */
static const iron__gpu_launch_record *main_kernel(const iron__kernels *kernels) {
    const iron__gpu_launch_record *main = NULL, *k;
    bool is_prepare, has_answer = kernels && kernels->answer.count > 0;

    for (size_t at = 0; (k = kernels_at(kernels, at, &is_prepare)); at++)
        if ((!main || threads_of(k) > threads_of(main)) && !(is_prepare && has_answer))
            main = k;
    return main;
}

/* The table. A table that wraps is worse than one without a column: columns are dropped in a fixed
 * order, least needed first (`drop_order` below), and only then are names cut. What stays
 * longest is what a race is about: name, time, GB/s, share of the ceiling. A column that is
 * empty in every row, such as transfers in a race on the CPU, is not shown either. */
typedef enum column_id {
    COLUMN_RANK,
    COLUMN_NAME,
    COLUMN_KERNEL,
    COLUMN_RATE,
    COLUMN_BAR,
    COLUMN_PERCENT,
    COLUMN_COLD,
    COLUMN_END_TO_END,
    COLUMN_TRANSFER,
    COLUMN_PREPARE,
    COLUMN_SPEEDUP,
    COLUMN_NOISE,
    COLUMN_SPREAD,
    COLUMN_SAMPLES,
    COLUMN_ENERGY,
    COLUMN_REGISTERS, /* these four: of the main kernel */
    COLUMN_LOCAL,
    COLUMN_SPILL,
    COLUMN_OCCUPANCY,
    COLUMNS
} column_id;

typedef struct layout {
    FILE *to;
    bool is_terminal;
    int width;
    int name_width;
    int widths[COLUMNS]; /* with the blank before each */
    bool is_shown[COLUMNS];
} layout;

typedef enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_YELLOW } colour;

static const iron__report_scope no_scope;

/* The figures of one line, of a row or of a ceiling. */
typedef struct line {
    short_text name;
    const iron__report_row *row;                   /* NULL: a ceiling */
    const iron__report_scope *scopes[IRON_SCOPES]; /* no_scope where one does not apply */
} line;

/* Titles and least widths, with the blank before each; titles in Markdown, where there are no
 * bars. */
static const struct {
    const char *title;
    int width;
    const char *markdown;
} table_columns[COLUMNS] = {
    [COLUMN_RANK] = {"", 5, "#"},
    [COLUMN_NAME] = {"contender", 0, "contender"}, /* as wide as the longest */
    [COLUMN_KERNEL] = {"kernel ms", 10, "kernel ms"},
    [COLUMN_RATE] = {"GB/s", 7, "GB/s"},
    [COLUMN_BAR] = {"ceiling", BAR_CELLS + 1, ""}, /* not in Markdown */
    [COLUMN_PERCENT] = {"%", 6, "of ceiling"},
    [COLUMN_COLD] = {"cold", 7, "cold GB/s"},
    [COLUMN_END_TO_END] = {"end ms", 8, "end to end ms"},
    [COLUMN_TRANSFER] = {"copy ms", 8, "transfer ms"},
    [COLUMN_PREPARE] = {"prep ms", 8, "prepare ms"},
    [COLUMN_SPEEDUP] = {"speedup", 8, "speedup"},
    [COLUMN_NOISE] = {"noise", 6, "noise"},
    [COLUMN_SPREAD] = {"median within", 14, "median within, ms"},
    [COLUMN_SAMPLES] = {"runs", 6, "samples"},
    [COLUMN_ENERGY] = {"GB/J", 6, "GB/s per W"},
    [COLUMN_REGISTERS] = {"regs", 5, "registers"},
    [COLUMN_LOCAL] = {"local", 6, "local bytes"},
    [COLUMN_SPILL] = {"spill", 6, "spill bytes"},
    [COLUMN_OCCUPANCY] = {"occ", 4, "occupancy"},
};

/* A bar in eighths of a character; more than 100 % (thanks to a cache) ends at the edge. */
static short_text bar(double percent) {
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int eighths = percent >= 100 ? 8 * BAR_CELLS : (int)(percent * 8 * BAR_CELLS / 100 + 0.5);

    return text_of("%.*s%s", eighths / 8 * (int)strlen("█"), "████████", parts[eighths % 8]);
}

/* "12.31-12.52": the median's interval; "(12.2-19.7)": all samples, where they are too few for one;
 * "" for one sample. */
static short_text spread_text(const iron__statistics *times) {
    if (times->count < 2)
        return (short_text){""};
    return times->coverage > 0
               ? text_of("%s-%s", figure(times->low).text, figure(times->high).text)
               : text_of("(%s-%s)", figure(times->min).text, figure(times->max).text);
}

/* What a line has in a column; "" if nothing. */
static short_text cell(const line *of, column_id column) {
    const iron__report_scope *s = of->scopes[IRON_SCOPE_KERNEL];
    double speedup = of->row ? of->row->speedup : 0;
    kernel_figures kernel;
    double used;
    short_text w = {""};

    switch (column) {
    case COLUMN_RANK:
        if (of->row)
            w = text_of("%2u%c%c", of->row->rank, of->row->is_peer ? PEER_MARK : ' ',
                        of->row->is_cache_resident  ? RESIDENT_MARK
                        : of->row->is_above_ceiling ? ABOVE_MARK
                                                    : ' ');
        return w;
    case COLUMN_NAME:
        return of->name;
    case COLUMN_KERNEL:
        return figure(s->warm.median);
    case COLUMN_RATE:
        return figure(s->gb_s);
    case COLUMN_BAR:
        return bar(s->percent_of_ceiling);
    case COLUMN_PERCENT:
        return figure_of(s->percent_of_ceiling, 1, "");
    case COLUMN_COLD:
        return figure(s->cold_gb_s);
    case COLUMN_END_TO_END:
        return figure(of->scopes[IRON_SCOPE_END_TO_END]->warm.median);
    case COLUMN_TRANSFER:
        return figure(of->scopes[IRON_SCOPE_TRANSFER]->warm.median);
    case COLUMN_PREPARE:
        return figure(of->scopes[IRON_SCOPE_PREPARE]->warm.median);
    case COLUMN_SPEEDUP:
        return figure_of(speedup, speedup < 10 ? 2 : speedup < 100 ? 1 : 0, "x");
    case COLUMN_NOISE:
        if (s->warm.count > 1) /* 0 is a figure, too */
            w = text_of("%.*f%%", s->warm.noise_percent < 10 ? 1 : 0, s->warm.noise_percent);
        return w;
    case COLUMN_SPREAD:
        return spread_text(&s->warm);
    case COLUMN_SAMPLES: /* "40p": forty samples, stopped by precision */
        if (s->warm.count > 0)
            w = text_of("%zu%.1s", s->warm.count, s->samples ? stop_name(s->samples->stop) : "");
        if (s->samples && s->samples->dropped > 0)
            iron__append(w.text, sizeof w.text, "-%u", s->samples->dropped);
        return w;
    case COLUMN_ENERGY:
        return figure(of->row && of->row->energy.source ? 1 / of->row->energy.joules_per_gb : 0);
    case COLUMN_REGISTERS:
    case COLUMN_LOCAL:
    case COLUMN_SPILL:
    case COLUMN_OCCUPANCY:
        kernel = kernel_figures_of(of->row ? main_kernel(of->row->kernels) : NULL);
        used = kernel.at[column == COLUMN_OCCUPANCY ? OCCUPANCY : column - COLUMN_REGISTERS];
        return used >= 0 ? text_of("%.0f", used) : w; /* 0 is a figure, too */
    case COLUMNS:
        break;
    }
    return w;
}

/* Not the number of samples: without it no figure can be judged. */
static const column_id drop_order[] = {
    COLUMN_SPREAD, COLUMN_LOCAL,      COLUMN_SPILL,    COLUMN_REGISTERS, COLUMN_OCCUPANCY,
    COLUMN_ENERGY, COLUMN_PREPARE,    COLUMN_TRANSFER, COLUMN_BAR,       COLUMN_NOISE,
    COLUMN_COLD,   COLUMN_END_TO_END, COLUMN_SPEEDUP,  COLUMN_PERCENT,
};

static line line_of_row(const iron__report_row *row) {
    line of = {.name = row_name(row), .row = row};

    for (iron__scope k = 0; k < IRON_SCOPES; k++)
        of.scopes[k] = iron__row_scope(row, k) ? iron__row_scope(row, k) : &no_scope;
    return of;
}

static line line_of_ceiling(const iron__report_ceiling *ceiling) {
    short_text name = text_of("%s%s ceiling: %s", ceiling->backend, device_number(ceiling->device),
                              ceiling->name);

    return (line){.name = plain(name.text, ""),
                  .scopes = {&no_scope, &ceiling->figures, &no_scope, &no_scope}};
}

/* Widens the columns for the line, and shows those that it fills. */
static void fit_line(layout *l, line of) {
    int name = columns_of(of.name.text);

    for (column_id k = 0; k < COLUMNS; k++) {
        int wide = columns_of(cell(&of, k).text);

        l->is_shown[k] |= wide > 0;
        if (k != COLUMN_NAME && wide + 1 > l->widths[k])
            l->widths[k] = wide + 1;
    }
    if (name > l->name_width)
        l->name_width = name;
}

static int line_width(const layout *l) {
    int width = l->name_width;

    for (column_id k = 0; k < COLUMNS; k++)
        width += l->is_shown[k] ? l->widths[k] : 0;
    return width;
}

/* Leaves out what no row of the report has, then what matters least, until a line fits. */
static layout make_layout(const iron__report *report, FILE *to, bool is_terminal, int width) {
    layout l = {.to = to, .is_terminal = is_terminal, .width = width, .name_width = NAME_MIN};
    size_t spare = 0;
    int over;

    for (column_id k = 0; k < COLUMNS; k++)
        l.widths[k] = table_columns[k].width;
    for (size_t k = 0; k < report->ceiling_count; k++)
        fit_line(&l, line_of_ceiling(&report->ceilings[k]));
    for (size_t k = 0; k < report->row_count; k++)
        if (report->rows[k].status == IRON_ROW_OK)
            fit_line(&l, line_of_row(&report->rows[k]));
    l.is_shown[COLUMN_BAR] &= is_terminal;
    while (line_width(&l) > width && spare < COUNT(drop_order))
        l.is_shown[drop_order[spare++]] = false;
    over = line_width(&l) - width;
    if (over > 0)
        l.name_width = l.name_width - over > NAME_MIN ? l.name_width - over : NAME_MIN;
    return l;
}

static void set_colour(const layout *l, colour c) {
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[1;31m", "\033[33m"};

    if (l->is_terminal)
        fputs(codes[c], l->to);
}

static void put_blanks(const layout *l, int count) {
    fprintf(l->to, "%*s", count > 0 ? count : 0, "");
}

static void put_cell(const layout *l, column_id k, const char *text) {
    int room = l->widths[k] - 1 - columns_of(text);
    int columns_of_name = columns_of(text), cut = columns_of_name - l->name_width;
    int keep = l->name_width / 2;

    if (k == COLUMN_NAME) { /* cut in the middle: its end (the memory) matters more */
        if (cut <= 0 || columns_of_name != (int)strlen(text))
            fprintf(l->to, "%s", text);
        else
            fprintf(l->to, "%.*s~%s", keep, text, text + keep + cut + 1);
        put_blanks(l, -cut);
        return;
    }
    if (k == COLUMN_RANK) {
        fprintf(l->to, "%-*s", l->widths[k], text);
        return;
    }
    put_blanks(l, k == COLUMN_BAR ? 1 : room + 1);
    fputs(text, l->to);
    put_blanks(l, k == COLUMN_BAR ? room : 0);
}

/* Up to the last cell that has something in it; the best row in bold, ceilings dim. */
static void put_line(const layout *l, line of) {
    bool is_best = of.row && of.row->rank == 1, is_ceiling = !of.row;
    column_id end = COLUMNS;

    if (is_best || is_ceiling)
        set_colour(l, is_best ? COLOUR_BOLD : COLOUR_DIM);
    while (end > 0 && (!l->is_shown[end - 1] || !cell(&of, end - 1).text[0]))
        end--;
    for (column_id k = 0; k < end; k++)
        if (l->is_shown[k])
            put_cell(l, k, cell(&of, k).text);
    if (is_best || is_ceiling)
        set_colour(l, COLOUR_NONE);
    fputc('\n', l->to);
}

/* Text from column *at on, with a blank before it unless that is 0, broken between words at the
 * width, with `indent` blanks before each further line. *at moves on. */
static void put_text(const layout *l, const char *text, int indent, int *at) {
    while (*text) {
        size_t word = strcspn(text, " ");
        short_text w = text_of("%.*s", (int)word, text);
        int wide = columns_of(w.text);

        if (*at > 0 && *at + 1 + wide > l->width) {
            fprintf(l->to, "\n%*s", indent, "");
            *at = indent;
        } else if (*at > 0) {
            fputc(' ', l->to);
            ++*at;
        }
        fputs(w.text, l->to);
        *at += wide;
        text += word + strspn(text + word, " ");
    }
}

/* A sentence on its own line; continuation lines are indented. */
static void put_sentence(const layout *l, const char *text) {
    int at = 0;

    put_text(l, plain(text, "").text, 4, &at);
    fputc('\n', l->to);
}

/* "58.1 to 64.8 GB/s in 9 measurements; datasheet 4800" */
static short_text band_text(const iron__report_ceiling *c) {
    return text_of("%s to %s GB/s in %u measurement%s%s%s", figure(c->low_gb_s).text,
                   figure(c->figures.gb_s).text, c->measurements, c->measurements == 1 ? "" : "s",
                   c->peak_gb_s > 0 ? "; datasheet " : "", figure(c->peak_gb_s).text);
}

/* A group without a line is not shown: its rows were all skipped. */
static void put_table_group(const layout *l, const iron__report *report, size_t first, size_t end) {
    const iron__report_row *rows = report->rows;
    size_t shown = first;
    short_text w;
    int at = 0;

    while (shown < end && rows[shown].status == IRON_ROW_SKIPPED)
        shown++;
    if (shown == end)
        return;
    w = text_of("%.400s: %.100s", group_title(&rows[first]).text, group_facts(&rows[first]).text);
    fputc('\n', l->to);
    set_colour(l, COLOUR_BOLD);
    put_text(l, w.text, 2, &at);
    set_colour(l, COLOUR_NONE);
    fputc('\n', l->to);
    set_colour(l, COLOUR_DIM);
    for (column_id k = 0; k < COLUMNS; k++)
        if (l->is_shown[k])
            put_cell(l, k, table_columns[k].title);
    set_colour(l, COLOUR_NONE);
    fputc('\n', l->to);
    for (size_t k = 0; k < report->ceiling_count; k++)
        if (group_has_ceiling(report, first, end, &report->ceilings[k]))
            put_line(l, line_of_ceiling(&report->ceilings[k]));
    for (size_t k = first; k < end; k++) {
        if (rows[k].status == IRON_ROW_OK)
            put_line(l, line_of_row(&rows[k]));
        else if (rows[k].status != IRON_ROW_SKIPPED) {
            static const char *const words[IRON_ROW_STATUSES] = {[IRON_ROW_WRONG] = "WRONG:",
                                                                 [IRON_ROW_IMPLAUSIBLE] =
                                                                     "IMPLAUSIBLE:",
                                                                 [IRON_ROW_FAILED] = "FAILED:"};
            int column = 4;

            fputs("   !", l->to);
            set_colour(l, rows[k].status == IRON_ROW_FAILED ? COLOUR_YELLOW : COLOUR_RED);
            put_text(l, row_name(&rows[k]).text, 5, &column);
            put_text(l, words[rows[k].status], 5, &column);
            put_text(l, plain(rows[k].reason, "").text, 7, &column);
            set_colour(l, COLOUR_NONE);
            fputc('\n', l->to);
        }
    }
}

static bool is_skipped_for(const iron__report_row *row, const char *reason) {
    return row->status == IRON_ROW_SKIPPED && strcmp(row->reason, reason) == 0;
}

/* Was the reason (and, with_name, the name) printed for a row before this one? Sizes and types
 * repeat both. */
static bool is_repeated(const iron__report *report, size_t index, bool with_name) {
    const iron__report_row *row = &report->rows[index];
    short_text name = row_name(row);

    for (size_t k = 0; k < index; k++)
        if (is_skipped_for(&report->rows[k], row->reason) &&
            (!with_name || strcmp(row_name(&report->rows[k]).text, name.text) == 0))
            return true;
    return false;
}

static void put_skipped_for(const layout *l, const iron__report *report, size_t first) {
    const char *reason = report->rows[first].reason;
    int at = 0;

    put_text(l, plain(reason, "").text, 4, &at);
    fputc(':', l->to);
    at++;
    for (size_t k = first; k < report->row_count; k++)
        if (is_skipped_for(&report->rows[k], reason) && !is_repeated(report, k, true)) {
            short_text name = row_name(&report->rows[k]);

            for (char *blank = name.text; (blank = strchr(blank, ' '));)
                *blank = '/'; /* the memory stays with its name when a line is broken */
            put_text(l, name.text, 4, &at);
        }
    fputc('\n', l->to);
}

static void put_legend(const layout *l, const iron__report *report) {
    static const struct {
        column_id column;
        const char *text;
    } columns[] = {
        {COLUMN_COLD, "cold: GB/s with empty caches."},
        {COLUMN_SPREAD, "median within: its interval in ms, of 95 % coverage or more; in "
                        "parentheses the range of fewer than six samples."},
        {COLUMN_SAMPLES, "runs: samples; stopped by p precision, t time, r number of runs; -N: N "
                         "dropped, since the machine was throttled."},
        {COLUMN_ENERGY, "GB/J: GB/s per watt of the whole card, or of processors and memory."},
        {COLUMN_SPEEDUP, "speedup: over the op's baseline, same backend."},
        {COLUMN_OCCUPANCY, "occ: percent of the threads that a unit can hold."},
        {COLUMN_REGISTERS, "regs, spill: registers and spilled bytes per thread."},
        {COLUMN_LOCAL, "local: bytes of local memory per group."},
    };
    bool has_peers = false, has_residents = false, is_above = false;
    int at = 0;

    for (size_t k = 0; k < report->row_count; k++) {
        has_peers |= report->rows[k].is_peer && report->rows[k].status == IRON_ROW_OK;
        is_above |= report->rows[k].is_above_ceiling && report->rows[k].status == IRON_ROW_OK;
        has_residents |= report->rows[k].is_cache_resident && report->rows[k].status == IRON_ROW_OK;
    }
    fputc('\n', l->to);
    set_colour(l, COLOUR_DIM);
    if (has_peers)
        put_text(l, "* a peer: another library.", 0, &at);
    if (has_residents)
        put_text(l, "~ cache-resident: the data fit into the cache.", 0, &at);
    if (is_above)
        put_text(l, "^ above the ceiling, also after a new search: not a share of anything.", 0,
                 &at);
    for (size_t k = 0; k < COUNT(columns); k++)
        if (l->is_shown[columns[k].column])
            put_text(l, columns[k].text, 0, &at);
    set_colour(l, COLOUR_NONE);
    fputc('\n', l->to);
}

/* First the machine; then one table per op, size, element type and parameters: the ceilings of the
 * devices, as rows in the same columns, and the contenders, best first. Wrong and failed rows
 * follow with their reasons, in colour. Skipped rows come once at the end, one line per reason,
 * since one absent driver explains twenty rows. The last line says how the figures were
 * measured. */
static void print_table(const iron__report *report, FILE *to, bool is_terminal, int width) {
    layout l = make_layout(report, to, is_terminal, width);
    bool is_first = true;
    const iron__report_host *host = &report->host;
    short_text w =
        text_of("iron %s on %s: %s, %u threads, %s; %s", report->version, host->name, host->cpu,
                host->threads, bytes_text(host->memory_bytes).text, host->date);
    uint32_t ends[IRON_STOP_RUNS + 1] = {0}, dropped = 0, raced = 0;
    short_text rules;
    int at = 0;

    put_sentence(&l, w.text);
    for (size_t k = 0; k < report->device_count; k++)
        put_sentence(&l, device_text(&report->devices[k]).text);
    if (report->own)
        put_sentence(&l, data_text(report->own).text);
    /* "cpu ceiling read: 58.1 to 64.8 GB/s in 9 measurements (512-bit, ...)" */
    for (const iron__report_ceiling *c = report->ceilings;
         c < report->ceilings + report->ceiling_count; c++) {
        w = text_of("%s%s ceiling %s: %s (%s)", c->backend, device_number(c->device), c->name,
                    band_text(c).text, c->shape);
        if (c->measurements > 1 || c->peak_gb_s > 0)
            put_sentence(&l, w.text);
    }
    for (size_t k = 0; k < report->row_count;) {
        size_t end = iron__report_group_end(report, k);

        put_table_group(&l, report, k, end);
        k = end;
    }
    for (size_t k = 0; k < report->row_count; k++) {
        if (report->rows[k].status != IRON_ROW_SKIPPED || is_repeated(report, k, false))
            continue;
        if (is_first)
            fputs("\nskipped\n", to);
        is_first = false;
        put_skipped_for(&l, report, k);
    }
    /* ops that the race passed over; devices that are unavailable are above the tables */
    for (size_t k = 0; k < report->remark_count; k++)
        if (strncmp(report->remarks[k], "unavailable", strlen("unavailable")) != 0)
            put_sentence(&l, report->remarks[k]);
    put_legend(&l, report);
    for (size_t k = 0; k < report->row_count; k++) {
        const iron__report_scope *kernel = iron__row_scope(&report->rows[k], IRON_SCOPE_KERNEL);

        raced += report->rows[k].status == IRON_ROW_OK;
        if (kernel && kernel->samples) {
            ends[kernel->samples->stop]++;
            dropped += kernel->samples->dropped;
        }
    }
    snprintf(
        rules.text, sizeof rules.text,
        "%u of %zu rows raced, interleaved, verified before and after, in %.1f s: %.1f for "
        "ceilings, %.1f for answers and samples (--time is for these), the rest for data; medians; "
        "sampling stopped by precision %u, time %u, runs %u times; %u samples dropped (throttled).",
        raced, report->row_count, report->seconds, report->ceiling_seconds, report->race_seconds,
        ends[IRON_STOP_PRECISION], ends[IRON_STOP_TIME], ends[IRON_STOP_RUNS], dropped);
    put_text(&l, rules.text, 0, &at);
    fputc('\n', to);
}

/* Markdown: tables as GitHub draws them. Names and reasons are text, whatever they contain: the
 * characters that Markdown or HTML would interpret are escaped, and a line break becomes a blank,
 * since a row of a table is one line. The resources of a row's main kernel are in columns at the
 * end, those that any row of the report fills. */
static short_text marked(const char *text) { return plain(text, "\\`*_{}[]<>|#~!"); }

/* What a line has in a column of Markdown. */
static short_text md_cell(const line *of, column_id column) {
    const iron__report_scope *s = of->scopes[IRON_SCOPE_KERNEL];
    const iron__report_row *row = of->row;
    short_text w = {""};

    switch (column) {
    case COLUMN_RANK:
        return row ? text_of("%u", row->rank) : w;
    case COLUMN_NAME:
        return text_of(row ? "%.440s%s%s" : "*%.440s*%s%s", marked(of->name.text).text,
                       row && row->is_peer ? " (peer)" : "",
                       row && row->is_cache_resident  ? " (cache-resident)"
                       : row && row->is_above_ceiling ? " (above the ceiling)"
                                                      : "");
    case COLUMN_PERCENT:
        return figure_of(s->percent_of_ceiling, 1, " %");
    case COLUMN_SPEEDUP:
        return figure_of(row ? row->speedup : 0, 2, "×");
    case COLUMN_SAMPLES:
        return text_of("%zu, %s", s->warm.count, s->samples ? stop_name(s->samples->stop) : "");
    case COLUMN_SPREAD:
        return marked(cell(of, column).text);
    case COLUMN_NOISE:
    case COLUMN_OCCUPANCY:
        w = cell(of, column);
        if (w.text[0])
            snprintf(w.text + strcspn(w.text, "%"), 3, " %%");
        return w;
    default:
        return cell(of, column);
    }
}

static void put_md_line(const layout *l, line of) {
    fputc('|', l->to);
    for (column_id k = 0; k < COLUMNS; k++) {
        short_text w = md_cell(&of, k);
        bool is_wide = w.text[0] || (of.row && k < COLUMN_ENERGY);

        if (l->is_shown[k])
            fprintf(l->to, " %s%s|", w.text, is_wide ? " " : "");
    }
    fputc('\n', l->to);
}

static void put_md_group(const layout *l, const iron__report *report, size_t first, size_t end) {
    const iron__report_row *rows = report->rows;
    FILE *to = l->to;

    fprintf(to, "\n## %s\n\n%s.\n", marked(group_title(&rows[first]).text).text,
            marked(group_facts(&rows[first]).text).text);
    if (rows[first].status == IRON_ROW_OK) {
        fputs("\n|", to);
        for (column_id k = 0; k < COLUMNS; k++)
            if (l->is_shown[k])
                fprintf(to, " %s |", table_columns[k].markdown);
        fputs("\n|", to);
        for (column_id k = 0; k < COLUMNS; k++)
            if (l->is_shown[k])
                fputs(k == COLUMN_NAME || k == COLUMN_SAMPLES ? "---|" : "---:|", to);
        fputc('\n', to);
        for (size_t k = 0; k < report->ceiling_count; k++)
            if (group_has_ceiling(report, first, end, &report->ceilings[k]))
                put_md_line(l, line_of_ceiling(&report->ceilings[k]));
    }
    for (; first < end && rows[first].status == IRON_ROW_OK; first++)
        put_md_line(l, line_of_row(&rows[first]));
    if (first < end)
        fputc('\n', to);
    for (; first < end; first++) {
        bool is_wrong = rows[first].status == IRON_ROW_WRONG;

        fprintf(to, "- %s %s: %s\n",
                is_wrong ? "**WRONG**" : iron__row_status_name(rows[first].status),
                marked(row_name(&rows[first]).text).text, marked(rows[first].reason).text);
    }
}

static void print_markdown(const iron__report *report, FILE *to) {
    layout l = make_layout(report, to, false, INT_MAX);
    const iron__report_host *host = &report->host;

    for (column_id k = 0; k < COLUMN_REGISTERS; k++)
        l.is_shown[k] = k != COLUMN_BAR && (k != COLUMN_ENERGY || l.is_shown[k]);
    fprintf(to, "# iron arena\n\niron %s on %s: %s, %u threads, %s; %s; %s (%s); commit %s; %s.\n",
            marked(report->version).text, marked(host->name).text, marked(host->cpu).text,
            host->threads, bytes_text(host->memory_bytes).text, marked(host->kernel).text,
            marked(host->compiler).text, marked(host->flags).text, marked(host->commit).text,
            marked(host->date).text);
    fprintf(to, "\nAgain with: %s\n\n", marked(report->command).text);
    for (size_t k = 0; k < report->device_count; k++)
        fprintf(to, "- %s\n", marked(device_text(&report->devices[k]).text).text);
    if (report->own)
        fprintf(to, "- %s\n", marked(data_text(report->own).text).text);
    if (report->ceiling_count > 0)
        fputs("\n## Ceilings\n\n| device | ceiling | GB/s | band | noise | samples | how |\n"
              "|---|---|---:|---|---:|---:|---|\n",
              to);
    for (size_t k = 0; k < report->ceiling_count; k++) {
        const iron__report_ceiling *c = &report->ceilings[k];

        fprintf(to, "| %s: %s | %s | %s | %s | %s | %zu | %s |\n", marked(c->backend).text,
                marked(c->device).text, marked(c->name).text, figure(c->figures.gb_s).text,
                band_text(c).text, figure_of(c->figures.warm.noise_percent, 1, " %").text,
                c->figures.warm.count, marked(c->shape).text);
    }
    for (size_t k = 0; k < report->row_count;) {
        size_t end = iron__report_group_end(report, k);

        put_md_group(&l, report, k, end);
        k = end;
    }
    for (size_t k = 0; k < report->remark_count; k++)
        fprintf(to, "%s- %s\n", k ? "" : "\n", marked(report->remarks[k]).text);
    fprintf(to,
            "\nMedians; every row verified before and after it was timed; %.1f s in all: %.1f for "
            "ceilings, %.1f for answers and samples, the rest for data.\n",
            report->seconds, report->ceiling_seconds, report->race_seconds);
}

/* CSV (RFC 4180): one line per row and scope, the same fields in each, names in the first. A row
 * without figures has one line with an empty scope. Cold samples are in fields of their own beside
 * the warm ones; ceilings and samples are only in the JSON. Of the kernels only the main one is
 * there. The fields are the same for every race, except the parameters of its cases: each name that
 * any row has is a field at the end, params.NAME as in the JSON. */
typedef struct csv {
    FILE *to;
    bool has_names; /* the record is the first: names instead of values */
    bool is_begun;
} csv;

/* Begins a field; false: its name was all there is to write. */
static bool csv_begin(csv *c, const char *name) {
    if (c->is_begun)
        fputc(',', c->to);
    c->is_begun = true;
    if (c->has_names)
        fputs(name, c->to);
    return !c->has_names;
}

/* Quotes only where they are needed; a quote inside is doubled. */
static void csv_text(csv *c, const char *name, const char *text) {
    bool is_quoted = strpbrk(text, ",\"\r\n");

    if (!csv_begin(c, name))
        return;
    if (is_quoted)
        fputc('"', c->to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', c->to);
        fputc(*text, c->to);
    }
    if (is_quoted)
        fputc('"', c->to);
}

static void csv_bool(csv *c, const char *name, bool value) {
    csv_text(c, name, value ? "true" : "false");
}

/* What an op or a memory does not have is 0 in the report, and empty here. */
static void csv_whole(csv *c, const char *name, uint64_t value) {
    if (csv_begin(c, name) && value)
        fprintf(c->to, "%" PRIu64, value);
}

/* Unknown is negative; 0 is a figure. */
static void csv_figure(csv *c, const char *name, double value) {
    if (csv_begin(c, name) && value >= 0 && value < 1e300)
        fprintf(c->to, "%.9g", value);
}

/* Unknown is 0. */
static void csv_real(csv *c, const char *name, double value) {
    csv_figure(c, name, value > 0 ? value : -1);
}

/* The names of all parameters of a report, each once. */
typedef struct param_names {
    const char *list[64];
    size_t count;
} param_names;

/* A record; scope: of zeros where the row has no figures. */
static void csv_record(csv *c, const param_names *all, const iron__report_row *row,
                       iron__scope which, const iron__report_scope *scope) {
    const iron__gpu_launch_record none = {.groups = 0}, *main = main_kernel(row->kernels);
    const iron__gpu_launch_record *kernel = main ? main : &none;
    kernel_figures f = kernel_figures_of(kernel);
    const iron__samples *s = scope->samples;

    c->is_begun = false;
    csv_text(c, "op", row->op);
    csv_text(c, "contender", row->contender);
    csv_text(c, "backend", row->backend);
    csv_text(c, "memory", row->memory);
    csv_text(c, "device", row->device);
    csv_text(c, "size", row->size);
    csv_text(c, "size_name", row->size_name);
    csv_text(c, "dtype", row->dtype);
    csv_whole(c, "vocab", row->vocab);
    csv_whole(c, "nodes", row->nodes);
    csv_whole(c, "streams", row->streams);
    csv_whole(c, "threads", row->threads);
    csv_bool(c, "peer", row->is_peer);
    csv_whole(c, "useful_bytes", row->useful_bytes);
    csv_bool(c, "cache_resident", row->is_cache_resident);
    csv_text(c, "status", iron__row_status_name(row->status));
    csv_text(c, "reason", row->reason);
    csv_bool(c, "verified", row->is_verified);
    csv_text(c, "baseline", row->baseline);
    csv_whole(c, "rank", row->rank);
    csv_real(c, "operations", row->operations);
    csv_real(c, "passes", row->passes);
    csv_text(c, "scope", iron__scope_name(which));
    csv_real(c, "median_ms", scope->warm.median);
    csv_real(c, "mean_ms", scope->warm.mean);
    csv_real(c, "min_ms", scope->warm.min);
    csv_real(c, "max_ms", scope->warm.max);
    csv_real(c, "p95_ms", scope->warm.p95);
    csv_real(c, "low_ms", scope->warm.low);
    csv_real(c, "high_ms", scope->warm.high);
    csv_real(c, "coverage_percent", 100 * scope->warm.coverage);
    csv_figure(c, "noise_percent", scope->warm.count > 1 ? scope->warm.noise_percent : -1);
    csv_real(c, "gb_s", scope->gb_s);
    csv_real(c, "percent_of_ceiling", scope->percent_of_ceiling);
    csv_real(c, "speedup", scope->speedup);
    csv_whole(c, "samples", scope->warm.count);
    csv_text(c, "stopped_by", s ? stop_name(s->stop) : "");
    csv_figure(c, "dropped", s ? (double)s->dropped : -1);
    csv_real(c, "cold_median_ms", scope->cold.median);
    csv_real(c, "cold_gb_s", scope->cold_gb_s);
    csv_whole(c, "cold_samples", scope->cold.count);
    csv_real(c, "joules_per_gb", row->energy.joules_per_gb);
    csv_real(c, "watts", row->energy.watts);
    csv_text(c, "energy_source", row->energy.source ? row->energy.source : "");
    csv_text(c, "kernel", kernel->kernel);
    csv_whole(c, "groups", kernel->groups);
    csv_whole(c, "threads_a_group", kernel->threads);
    for (size_t k = 0; k < KERNEL_FIGURES; k++)
        csv_figure(c, kernel_figure_names[k], f.at[k]);
    for (size_t k = 0; k < all->count; k++) {
        csv_begin(c, "params.");
        if (c->has_names)
            fputs(all->list[k], c->to);
        for (size_t p = 0; p < row->params.count; p++)
            if (strcmp(row->params.list[p].name, all->list[k]) == 0)
                fputs(iron__param_text(&row->params.list[p]).text, c->to);
    }
    fputs("\r\n", c->to);
}

static void print_csv(const iron__report *report, FILE *to) {
    static const iron__report_row no_row;
    param_names all = {.count = 0};
    csv c = {.to = to, .has_names = true};

    for (size_t k = 0; k < report->row_count; k++)
        for (size_t p = 0; p < report->rows[k].params.count; p++) {
            const char *name = report->rows[k].params.list[p].name;
            size_t at = 0;

            while (at < all.count && strcmp(all.list[at], name) != 0)
                at++;
            if (at == all.count && at < COUNT(all.list))
                all.list[all.count++] = name;
        }
    csv_record(&c, &all, &no_row, IRON_SCOPES, &no_scope);
    c.has_names = false;
    for (const iron__report_row *row = report->rows; row < report->rows + report->row_count;
         row++) {
        bool has_figures = false;

        for (iron__scope s = 0; s < IRON_SCOPES; s++)
            if (iron__row_scope(row, s)) {
                csv_record(&c, &all, row, s, iron__row_scope(row, s));
                has_figures = true;
            }
        if (!has_figures)
            csv_record(&c, &all, row, IRON_SCOPES, &no_scope);
    }
}

static void print_plain_table(const iron__report *report, FILE *to) {
    print_table(report, to, false, 100);
}

iron_status iron_arena_report(const iron_arena *arena, iron_report_format format, const char *path,
                              iron_error *err) {
    static report_printer *const printers[] = {[IRON_REPORT_TABLE] = print_plain_table,
                                               [IRON_REPORT_MARKDOWN] = print_markdown,
                                               [IRON_REPORT_CSV] = print_csv,
                                               [IRON_REPORT_JSON] = print_json,
                                               [IRON_REPORT_HTML] = print_html};

    IRON_FAIL_IF(!arena->has_raced, err, IRON_E_STATE, "there is no report before the race");
    IRON_FAIL_IF(format >= COUNT(printers), err, IRON_E_ARG, "there is no report format %d",
                 (int)format);
    return write_whole(path, printers[format], &arena->report, err);
}

void iron_arena_print(const iron_arena *arena, int is_terminal, int columns) {
    print_table(&arena->report, stdout, is_terminal != 0, columns);
}
