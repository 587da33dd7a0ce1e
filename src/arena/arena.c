/* SPDX-License-Identifier: MIT */
/*
 * arena.c: opens an arena, which makes the plan of a race; lists its rows; closes it. In reading
 * order: parameters, peers, the plan, the user's tokens, the arena. The other functions of
 * iron_arena.h are in run.c, report.c, compare.c and device_*.c.
 *
 * Parameters of a case are compared as they are written: a report on disk has nine digits, and a
 * new race must match it.
 *
 * Peers are plug-ins of other libraries (iron/iron_peer.h). Each is kept with its rows, or with the
 * reason why it cannot be used. Folders, in this order: that of the running program;
 * <libdir>/iron/peers of the installation that the program belongs to; the configured one. A file
 * name that was seen in an earlier folder is not loaded again, so a build uses its own plug-ins.
 * IRON_PEERS names the only folder to search; IRON_PEERS=none loads nothing. A plug-in is checked
 * before it is called: it must load with everything it needs (RTLD_NOW: a missing library is found
 * here and not in the middle of a race), export the one function, match this contract's version
 * (abi, struct_size), and have complete rows with valid names. One bad row rejects the whole
 * plug-in. RTLD_LOCAL: two peers may bring different versions of the same library. A statically
 * linked command has no loader and no peers.
 *
 * The plan comes from the options of the command: which ops, sizes and parameters (cases), on which
 * devices, with which contenders and peers (rows), and whether each row can race or why not.
 * Remarks say what is absent, and why. First come the options as users write them (globs, sizes,
 * scopes, memory strategies, values of parameters), then devices, the rows of a case, the cases of
 * an op, all ops. Parsing is strict: a word that is not understood is refused with a message that
 * says what would be accepted. An op has a case for every requested size and every combination of
 * values of its axes. A combination that the op cannot do at that size is passed over, as long as
 * every value that was requested by name is in another combination that it can do.
 */
#include "arena/arena_internal.h"
#include "core/array.h"
#include "core/cpu.h"
#include "core/fail.h"
#include "core/files.h"
#include "core/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <unistd.h>
#if IRON_WITH_PEERS
#include <dlfcn.h>
#endif

iron__param_value iron__param_text(const iron__param *param) {
    iron__param_value v;

    if (!param->word[0])
        return iron__param_number(param->number);
    snprintf(v.text, sizeof v.text, "%s", param->word);
    return v;
}

bool iron__params_are_same(const iron__params *a, const iron__params *b) {
    for (size_t k = 0; k < a->count; k++) {
        const iron__param *p = &a->list[k], *q = b->list;

        while (q < b->list + b->count && strcmp(q->name, p->name) != 0)
            q++;
        if (q == b->list + b->count ||
            strcmp(iron__param_text(p).text, iron__param_text(q).text) != 0)
            return false;
    }
    return a->count == b->count;
}

iron__params_line iron__params_text(const iron__params *params, bool is_axis) {
    iron__params_line line = {""};

    for (const iron__param *p = params->list; p < params->list + params->count; p++) {
        if (p->is_axis == is_axis)
            iron__append(line.text, sizeof line.text, "%s%s %s", line.text[0] ? ", " : "", p->name,
                         iron__param_text(p).text);
    }
    return line;
}

#define VARIABLE       "IRON_PEERS"
#define PREFIX         "libiron-peer-"
#define SUFFIX         ".so"
#define ENTRY          "iron_peer_list_get"
#define PATH_MAX_BYTES 4096

/* Row number `index` over all plug-ins, and whose it is (may be NULL); NULL past the last. */
static const iron_peer *peers_at(const iron__peers *peers, size_t index,
                                 const iron__peer_library **library) {
    for (size_t k = 0; k < peers->count; k++) {
        const iron_peer_list *list = peers->libraries[k].list;
        size_t rows = list ? list->count : 0;

        if (index < rows) {
            if (library)
                *library = &peers->libraries[k];
            return &list->rows[index];
        }
        index -= rows;
    }
    return NULL;
}

#if IRON_WITH_PEERS

static const char *const cannot_load = NULL;

#define PART "[abcdefghijklmnopqrstuvwxyz0123456789_-]"

/* Does the list keep to the contract? If not, err says what is wrong. */
static iron_status check_list(const iron_peer_list *list, iron_error *err) {
    IRON_FAIL_IF(!list, err, IRON_E_FORMAT, ENTRY " returned NULL");
    IRON_FAIL_IF(list->abi != IRON_PEER_ABI, err, IRON_E_FORMAT,
                 "it has abi %u, this iron has %u; rebuild it", (unsigned)list->abi, IRON_PEER_ABI);
    IRON_FAIL_IF(!list->library || !list->version || !list->rows || list->count == 0, err,
                 IRON_E_FORMAT, "its list has no library, no version or no rows");
    for (size_t k = 0; k < list->count; k++) {
        const iron_peer *row = &list->rows[k];
        char backend[8] = "";
        int end = 0;

        IRON_FAIL_IF(row->struct_size != sizeof *row, err, IRON_E_FORMAT,
                     "row %zu has struct_size %u, this iron's is %zu; rebuild it", k,
                     (unsigned)row->struct_size, sizeof *row);
        if (row->name)
            (void)sscanf(row->name, "%*" PART ".%7" PART ".%*" PART "%n", backend, &end);
        IRON_FAIL_IF(end == 0 || row->name[end] ||
                         (strcmp(backend, "cpu") != 0 && strcmp(backend, "cuda") != 0 &&
                          strcmp(backend, "opencl") != 0),
                     err, IRON_E_FORMAT,
                     "row %zu is named '%.60s', which is not op.backend.library with a backend of "
                     "cpu, cuda, opencl",
                     k, row->name ? row->name : "(null)");
        IRON_FAIL_IF(!row->idea || !row->dtypes || !row->open || !row->run || !row->close, err,
                     IRON_E_FORMAT,
                     "row %.60s is incomplete: it needs idea, dtypes, open, run, close", row->name);
    }
    return IRON_OK;
}

/* The rows of a plug-in, which stay as long as the process; or NULL with the reason. */
static const iron_peer_list *load_library(const char *path, char *reason, size_t size) {
    const iron_peer_list *(*get)(void) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, ENTRY) : NULL;
    const iron_peer_list *list;
    iron_error why = {0};

    if (symbol) {
        memcpy(&get, &symbol, sizeof get); /* ISO C has no cast from object to function pointer */
        list = get();
        if (check_list(list, &why) == IRON_OK)
            return list;
        snprintf(reason, size, "%s", why.text);
    } else {
        const char *fault = dlerror();

        snprintf(reason, size, "%s", fault ? fault : "it cannot be loaded");
    }
    if (library)
        dlclose(library);
    return NULL;
}

#else

static const char *const cannot_load =
    "this build of iron loads no plug-ins; build it without IRON_STATIC_COMMAND";

static const iron_peer_list *load_library(const char *path, char *reason, size_t size) {
    (void)path;
    snprintf(reason, size, "%s", cannot_load);
    return NULL;
}

#endif

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Loads a plug-in; with a reason adds what cannot be used. */
static iron_status add_library(iron__peers *p, const char *path, const char *reason,
                               iron_error *err) {
    iron__peer_library *grown = realloc(p->libraries, (p->count + 1) * sizeof *grown), *c;
    const iron__peer_library *owner;
    const iron_peer_list *list;
    const iron_peer *row;

    if (!grown)
        return iron__no_memory(err, "a list of peers");
    p->libraries = grown;
    c = &grown[p->count];
    *c = (iron__peer_library){.path = strdup(path)};
    if (!c->path)
        return iron__no_memory(err, "a list of peers");
    p->count++;
    if (reason)
        snprintf(c->reason, sizeof c->reason, "%s", reason);
    list = reason ? NULL : load_library(path, c->reason, sizeof c->reason);
    for (size_t k = 0; list && k < list->count; k++)
        for (size_t n = 0; (row = peers_at(p, n, &owner)); n++)
            if (strcmp(row->name, list->rows[k].name) == 0) {
                snprintf(c->reason, sizeof c->reason, "%.60s has the row %.60s already",
                         base_name(owner->path), row->name);
                return IRON_OK;
            }
    c->list = list;
    return IRON_OK;
}

static int is_plugin(const struct dirent *entry) {
    return fnmatch(PREFIX "?*" SUFFIX, entry->d_name, 0) == 0;
}

/* By bytes: the order of alphasort depends on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static iron_status search(iron__peers *p, const char *in, bool is_required, iron_error *err) {
    struct dirent **entries = NULL;
    int count = scandir(in, &entries, is_plugin, by_name);
    iron_status status = IRON_OK;

    if (count < 0 && errno == ENOMEM)
        return iron__no_memory(err, "a list of peers");
    if (count < 0)
        return is_required ? add_library(p, in, strerror(errno), err) : IRON_OK;
    for (int k = 0; k < count; k++) {
        char path[PATH_MAX_BYTES];
        size_t seen = 0;

        while (seen < p->count &&
               strcmp(base_name(p->libraries[seen].path), entries[k]->d_name) != 0)
            seen++;
        snprintf(path, sizeof path, "%s/%s", in, entries[k]->d_name);
        if (status == IRON_OK && seen == p->count)
            status = add_library(p, path, NULL, err);
        free(entries[k]);
    }
    free(entries);
    return status;
}

static iron_status search_default_folders(iron__peers *p, iron_error *err) {
    char own[PATH_MAX_BYTES], installed[PATH_MAX_BYTES + sizeof IRON_PEERS_FROM_COMMAND];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    own[length > 0 ? length : 0] = '\0'; /* of the running program, if the system says it */
    if (strrchr(own, '/')) {
        *strrchr(own, '/') = '\0';
        snprintf(installed, sizeof installed, "%s/%s", own, IRON_PEERS_FROM_COMMAND);
        IRON_TRY(search(p, own, false, err));
        IRON_TRY(search(p, installed, false, err));
    }
    return search(p, IRON_PEERS_FOLDER, false, err);
}

/* Takes a struct of zeros, too. */
static void peers_close(iron__peers *peers) {
    for (size_t k = 0; k < peers->count; k++)
        free(peers->libraries[k].path);
    free(peers->libraries);
    *peers = (iron__peers){.count = 0};
}

/* Loads all plug-ins. One that cannot be used is not an error. IRON_E_NOMEM. */
static iron_status peers_open(iron__peers *out, iron_error *err) {
    /* secure_getenv: not for a program with more rights than its caller */
    const char *named = secure_getenv(VARIABLE);
    iron_status status;

    *out = (iron__peers){.count = 0};
    if (named && strcmp(named, "none") == 0)
        return IRON_OK;
    if (cannot_load)
        status = add_library(out, "", cannot_load, err);
    else if (named && named[0])
        status = search(out, named, true, err);
    else
        status = search_default_folders(out, err);
    if (status != IRON_OK)
        peers_close(out);
    return status;
}

/* Adds a parameter; NULL if there are too many, which the ops' tests would find. */
static iron__param *add_param(iron__params *params, const char *name, bool is_axis) {
    iron__param *p = &params->list[params->count];

    if (params->count == IRON_PARAMS_MAX)
        return NULL;
    params->count++;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->is_axis = is_axis;
    return p;
}

/* The user's data replace the axis of this name; an op without it gets a parameter of this name. */
#define DATA_AXIS "data"

/* The case's value on each axis of its op, the user's data, then the other facts of the op. */
iron__params iron__params_of(const iron__case *c) {
    iron__params all = {.count = 0};
    const char *name = "";
    double value = 0;

    for (size_t k = 0; k < c->op->axis_count; k++) {
        const iron__axis *axis = &c->op->axes[k];
        bool is_own = c->data && strcmp(axis->name, DATA_AXIS) == 0;
        iron__param *p = is_own ? NULL : add_param(&all, axis->name, true);

        if (p && axis->words)
            snprintf(p->word, sizeof p->word, "%s", axis->words[(size_t)c->at[k]]);
        else if (p)
            p->number = c->at[k];
    }
    if (c->data)
        snprintf(add_param(&all, DATA_AXIS, true)->word, sizeof all.list[0].word, "%s",
                 c->data->name);
    for (size_t k = 0; c->op->param_at && c->op->param_at(c, k, &name, &value); k++) {
        iron__param *p = add_param(&all, name, false);

        if (!p)
            break;
        p->number = value;
    }
    return all;
}

iron_peer_case iron__peer_case(const iron__op_problem *problem, void *output, uint32_t threads) {
    iron_peer_case c = {.struct_size = sizeof c,
                        .threads = threads,
                        .dtype = iron__element_name(problem->c.element),
                        .rows = problem->c.rows,
                        .cols = problem->c.cols,
                        .vocab = problem->c.vocab,
                        .input_count = (uint32_t)problem->input_count,
                        .output = output,
                        .output_bytes = problem->output_bytes};
    iron__params params;

    for (size_t k = 0; k < problem->input_count; k++) {
        c.inputs[k] = problem->inputs[k].data;
        c.input_bytes[k] = problem->inputs[k].bytes;
    }
    params = iron__params_of(&problem->c); /* "reach=grid bins=256" */
    for (const iron__param *p = params.list; p < params.list + params.count; p++) {
        iron__append(c.params, sizeof c.params, "%s%s=", p > params.list ? " " : "", p->name);
        if (p->word[0])
            iron__append(c.params, sizeof c.params, "%s", p->word);
        else
            iron__append(c.params, sizeof c.params, "%.15g", p->number);
    }
    return c;
}

#define WORD_ROOM       64u
#define SIZES_MAX       1024u
#define AXIS_VALUES_MAX 64u
#define REMARKS_MAX     64u

/* A race of more cases would take too long. */
#define CASES_MAX 4096u

/* A run that is expected to take longer than this part of a case's time is not started. */
#define RUNS_PER_CASE 8.0

/* Marks the elements of a peer as known: a peer with no matching dtype knows no type, while a
 * contender with no elements knows all. */
#define NO_ELEMENT IRON_BIT(IRON_ELEMENTS)

/* A requested size. */
typedef struct chosen_size {
    uint64_t rows, cols;
    char name[40];     /* "talk:STANDARD"; "" for plain numbers */
    const char *dtype; /* that belongs to the named size; NULL */
} chosen_size;

/* The values of one axis that an op is raced with. */
typedef struct axis_values {
    double at[AXIS_VALUES_MAX]; /* as iron__case has them */
    size_t count;
    bool is_asked; /* requested by name; else they are the op's own */
} axis_values;

/* The values of all axes, and the number of their combinations. */
typedef struct grid {
    axis_values axes[IRON_OP_AXES];
    size_t count;
} grid;

/* A plan that is being made. */
typedef struct planner {
    iron__race_plan *plan;
    const iron_arena_options *o;
    uint32_t memory, scopes;              /* bits of the requested strategies and scopes */
    uint32_t elements;                    /* bits of the requested types; 0: each op's default */
    const iron__op *op;                   /* the current one */
    bool *is_used;                        /* per glob: it chose something */
    bool *is_known;                       /* per parameter: a chosen op has it */
    const iron__race_plan_device *absent; /* globs chose rows of it without its name */
    size_t refused;                       /* sizes and types that do not suit the current op */
    iron_error refusal;                   /* why the first did not */
} planner;

/* Does the glob choose op.backend.contender? `*` also matches dots. A glob that ends at a dot of
 * the name chooses everything below: tokens.cpu.champion also means tokens.cpu.champion.neon. */
static bool glob_matches(const char *glob, const char *name) {
    char front[128];

    if (fnmatch(glob, name, 0) == 0)
        return true;
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        snprintf(front, sizeof front, "%.*s", (int)(dot - name), name);
        if (fnmatch(glob, front, 0) == 0)
            return true;
    }
    return false;
}

/* Takes the next word of a comma-separated list, which becomes NULL after the last; words may be
 * empty. A word that is too long is cut, and therefore unknown. */
static bool next_word(const char **list, char word[WORD_ROOM]) {
    const char *end;

    if (!*list)
        return false;
    end = *list + strcspn(*list, ",");
    snprintf(word, WORD_ROOM, "%.*s", (int)(end - *list), *list);
    *list = *end ? end + 1 : NULL;
    return true;
}

/* A plain decimal number at *text, which is advanced past it; 0 if there is none. */
static uint64_t number_at(const char **text) {
    char *end = NULL;
    unsigned long long value;

    if (**text < '1' || **text > '9')
        return 0;
    errno = 0;
    value = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0 ? value : 0;
}

static bool is_size(const iron__size *s, const char *word) {
    const char *colon = strchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : 0;

    if (!colon)
        return strcmp(s->name, word) == 0;
    return strlen(s->set) == length && strncmp(s->set, word, length) == 0 &&
           (strcmp(colon + 1, "*") == 0 || strcmp(colon + 1, s->name) == 0);
}

static iron_status add_size(chosen_size *out, size_t *count, chosen_size size, iron_error *err) {
    IRON_FAIL_IF(*count == SIZES_MAX, err, IRON_E_ARG, "more than %u sizes; use fewer", SIZES_MAX);
    out[(*count)++] = size;
    return IRON_OK;
}

/* 2^log, with straight lines between the powers of two. */
static uint64_t power_of(double log) {
    unsigned whole = (unsigned)log;

    return (uint64_t)((double)(UINT64_C(1) << whole) * (1 + log - whole));
}

/* The inverse of power_of. */
static double log_of(uint64_t number) {
    int whole = 63 - __builtin_clzll(number);

    return whole - 1 + (double)number / (double)(UINT64_C(1) << whole);
}

static double random_unit(uint64_t seed, uint64_t index) {
    return (double)(iron__mix64(seed + (index + 1) * IRON_GOLDEN_GAMMA) >> 11) * 0x1p-53;
}

#define RANDOM          "random"
#define RANDOM_ELEMENTS UINT64_C(1000000000)
#define RANDOM_ALIGN    UINT64_C(16)

/* random:COUNT[:SEED[:ELEMENTS]] */
static bool parse_random(const char *word, uint64_t numbers[3]) {
    bool is_random = strncmp(word, RANDOM ":", sizeof RANDOM) == 0;

    numbers[0] = 0;
    numbers[1] = 1;
    numbers[2] = RANDOM_ELEMENTS;
    word += is_random ? sizeof RANDOM - 1 : 0;
    for (size_t k = 0; is_random && k < 3 && *word == ':'; k++) {
        word++;
        numbers[k] = number_at(&word);
        is_random = numbers[k] > 0 && numbers[k] < UINT64_C(1) << 52;
    }
    return is_random && *word == '\0';
}

/* Different shapes of 1 element to the greatest number. Logarithms are uniform: that of the
 * elements over as many equal parts as there are shapes, that of the rows from 0 to that of the
 * elements; so tiny and large, tall, square and wide shapes are as likely as each other. Both sides
 * of every second shape are multiples of 16 where they can be. */
static iron_status add_random(const iron__op *op, const uint64_t numbers[3], chosen_size *out,
                              size_t *count, iron_error *err) {
    uint64_t shapes = numbers[0], seed = numbers[1];

    for (uint64_t k = 0; k < shapes; k++) {
        double part = ((double)k + random_unit(seed, 2 * k)) / (double)shapes;
        uint64_t elements = power_of(part * log_of(numbers[2]));
        uint64_t rows = power_of(random_unit(seed, 2 * k + 1) * log_of(elements));
        uint64_t cols = elements / rows;

        if (k % 2 == 1 && rows > RANDOM_ALIGN)
            rows -= rows % RANDOM_ALIGN;
        if (k % 2 == 1 && cols > RANDOM_ALIGN)
            cols -= cols % RANDOM_ALIGN;
        if (op->is_line) {
            rows = elements;
            cols = 1;
        }
        for (size_t same = 0; same < *count; same++)
            if (out[same].rows == rows && out[same].cols == cols) {
                rows++;
                same = SIZE_MAX; /* from the first one on */
            }
        IRON_TRY(add_size(out, count, (chosen_size){.rows = rows, .cols = cols}, err));
    }
    return IRON_OK;
}

/* The sizes of a list that the op knows: set:NAME, set:*, NAME, ROWSxCOLS, a count, random shapes.
 * A word that suits other ops is passed over; one that suits none is an error. */
static iron_status parse_sizes(const iron__op *op, const char *list, chosen_size *out,
                               size_t *count, iron_error *err) {
    char word[WORD_ROOM];

    *count = 0;
    IRON_FAIL_IF(!*list, err, IRON_E_ARG, "no size; use a name, ROWSxCOLS or a count");
    while (next_word(&list, word)) {
        const char *at = word;
        uint64_t rows = number_at(&at), cols = 1, numbers[3];
        bool is_line = rows == 0 || *at != 'x', is_known = false, is_bare = !strchr(word, ':');

        if (!is_line) {
            at++;
            cols = number_at(&at);
        }
        if (rows > 0 && cols > 0 && *at == '\0') {
            if (op->is_line == is_line)
                IRON_TRY(add_size(out, count, (chosen_size){.rows = rows, .cols = cols}, err));
            continue;
        }
        if (parse_random(word, numbers)) {
            IRON_TRY(add_random(op, numbers, out, count, err));
            continue;
        }
        for (size_t k = 0; iron__op_at(k); k++)
            for (size_t s = 0; s < iron__op_at(k)->size_count; s++)
                is_known = is_known || is_size(&iron__op_at(k)->sizes[s], word);
        IRON_FAIL_IF(!is_known, err, IRON_E_ARG,
                     "size '%s' is unknown; use a name that iron arena --list shows, ROWSxCOLS, "
                     "a count of elements or random:COUNT[:SEED[:ELEMENTS]]",
                     word);
        for (const iron__size *s = op->sizes; s < op->sizes + op->size_count; s++) {
            chosen_size size = {.rows = s->rows, .cols = s->cols, .dtype = s->dtype};

            if (!is_size(s, word))
                continue;
            snprintf(size.name, sizeof size.name, "%s:%s", s->set, s->name);
            IRON_TRY(add_size(out, count, size, err));
            if (is_bare)
                break; /* it means the first set that has it */
        }
    }
    return IRON_OK;
}

/* A list of scopes, as bits of iron__scope; NULL: all. */
static iron_status parse_scopes(const char *list, uint32_t *bits, iron_error *err) {
    char word[WORD_ROOM];

    *bits = IRON_BIT(IRON_SCOPES) - 1;
    if (!list)
        return IRON_OK;
    *bits = IRON_BIT(IRON_SCOPE_KERNEL);
    IRON_FAIL_IF(!*list, err, IRON_E_ARG, "no scope; use kernel, transfer or end_to_end");
    while (next_word(&list, word)) {
        iron__scope scope = IRON_SCOPE_KERNEL; /* prepare is always timed */

        while (scope < IRON_SCOPES && strcmp(iron__scope_name(scope), word) != 0)
            scope++;
        IRON_FAIL_IF(scope == IRON_SCOPES, err, IRON_E_ARG,
                     "scope '%s' is unknown; use kernel, transfer or end_to_end", word);
        *bits |= IRON_BIT(scope);
    }
    return IRON_OK;
}

/* A list of element types, as bits; NULL: none. */
static iron_status parse_dtypes(const char *list, uint32_t *bits, iron_error *err) {
    char word[WORD_ROOM];

    *bits = 0;
    while (next_word(&list, word)) {
        iron__element element = iron__element_find(word);

        IRON_FAIL_IF(element == IRON_ELEMENTS, err, IRON_E_ARG,
                     "dtype '%.20s' is unknown; use f32, f64, u8, u16 or u32", word);
        *bits |= IRON_BIT(element);
    }
    return IRON_OK;
}

/* A list of memory strategies, as bits; NULL: all. */
static iron_status parse_memory(const char *list, uint32_t *bits, iron_error *err) {
    char word[WORD_ROOM];

    *bits = IRON_BIT(IRON_GPU_STRATEGIES) - 1;
    if (!list || strcmp(list, "all") == 0)
        return IRON_OK;
    *bits = 0;
    IRON_FAIL_IF(!*list, err, IRON_E_ARG, "no memory strategy; use pageable, pinned ... or all");
    while (next_word(&list, word)) {
        iron__gpu_strategy strategy = iron__gpu_strategy_find(word);

        IRON_FAIL_IF(strategy == IRON_GPU_STRATEGIES, err, IRON_E_ARG,
                     "memory '%s' is unknown; use pageable, pinned, streams, uvm, uvm-prefetch, "
                     "zero-copy or all",
                     word);
        *bits |= IRON_BIT(strategy);
    }
    return IRON_OK;
}

/* Length of NAME in NAME=V,V... */
static size_t name_length(const char *param) { return strcspn(param, "="); }

/* Are the params NAME=V,V..., each with another name? Whether an op has them is checked later. */
static iron_status check_params(const char *const *params, size_t count, iron_error *err) {
    for (size_t k = 0; k < count; k++) {
        size_t length = name_length(params[k]);

        IRON_FAIL_IF(length == 0 || params[k][length] == '\0' || params[k][length + 1] == '\0', err,
                     IRON_E_ARG,
                     "parameter '%.60s' is not NAME=VALUE; iron arena --list shows them",
                     params[k]);
        for (size_t other = 0; other < k; other++)
            IRON_FAIL_IF(name_length(params[other]) == length &&
                             strncmp(params[other], params[k], length) == 0,
                         err, IRON_E_ARG,
                         "parameter '%.*s' is given twice; put its values into one, with commas",
                         length < 60 ? (int)length : 60, params[k]);
    }
    return IRON_OK;
}

/* Is `param` (NAME=V,V...) about that axis? */
static bool is_about_axis(const char *param, const iron__axis *axis) {
    size_t length = name_length(param);

    return strlen(axis->name) == length && strncmp(param, axis->name, length) == 0;
}

void iron__axis_accepts(const iron__axis *axis, char *text, size_t size) {
    text[0] = '\0';
    if (!axis->words) {
        snprintf(text, size, "%snumbers from %s to %s", axis->is_whole ? "whole " : "",
                 iron__param_number(axis->least).text, iron__param_number(axis->most).text);
        return;
    }
    for (size_t k = 0; k < axis->count; k++)
        iron__append(text, size, "%s%s",
                     k == 0                 ? ""
                     : k + 1 == axis->count ? " or "
                                            : ", ",
                     axis->words[k]);
}

/* Adds a word of the axis, or a number in decimal notation only: strtod would also accept
 * hexadecimal, "inf" and blanks. */
static iron_status add_value(const iron__op *op, const iron__axis *axis, const char *value,
                             axis_values *out, iron_error *err) {
    char accepts[200], *end = NULL;
    size_t word = 0;
    bool is_right;
    double at;

    while (axis->words && word < axis->count && strcmp(axis->words[word], value) != 0)
        word++;
    errno = 0;
    at = axis->words ? (double)word : strtod(value, &end);
    is_right = axis->words
                   ? word < axis->count
                   : strspn(value, "+-.0123456789eE") == strlen(value) &&
                         strpbrk(value, "0123456789") && !*end && errno == 0 && at >= axis->least &&
                         at <= axis->most && (!axis->is_whole || iron__number_is_whole(at));
    iron__axis_accepts(axis, accepts, sizeof accepts);
    IRON_FAIL_IF(!is_right, err, IRON_E_ARG, "%s: %s is '%.60s'; it must be %s", op->name,
                 axis->name, value, accepts);
    for (size_t k = 0; k < out->count; k++)
        if (!(out->at[k] < at || out->at[k] > at))
            return IRON_OK; /* named before */
    IRON_FAIL_IF(out->count == AXIS_VALUES_MAX, err, IRON_E_ARG,
                 "more than %u values of %s; use fewer", AXIS_VALUES_MAX, axis->name);
    out->at[out->count++] = at;
    return IRON_OK;
}

/* The values of an axis: the requested ones; else all of them (is_wide) or the telling one. A value
 * that is named twice is raced once. */
static iron_status choose_values(const iron__op *op, const iron__axis *axis,
                                 const char *const *params, size_t param_count, bool is_wide,
                                 axis_values *out, iron_error *err) {
    char value[WORD_ROOM];
    const char *list;

    *out = (axis_values){.count = 0};
    for (size_t k = 0; k < param_count; k++) {
        if (!is_about_axis(params[k], axis))
            continue;
        out->is_asked = true;
        list = params[k] + name_length(params[k]) + 1;
        while (next_word(&list, value))
            IRON_TRY(add_value(op, axis, value, out, err));
        return IRON_OK;
    }
    for (size_t k = 0; k < axis->count && out->count < AXIS_VALUES_MAX; k++)
        if (is_wide || k == axis->telling)
            out->at[out->count++] = axis->words ? (double)k : axis->numbers[k];
    return IRON_OK;
}

/* Does a glob name the GPU backend, not only match it with a wildcard, or is a contender from
 * outside for it? */
static bool is_named(const iron_arena_options *o, const char *backend) {
    if (o->is_listing)
        return true;
    for (size_t k = 0; k < o->glob_count; k++)
        if (strstr(o->globs[k], backend))
            return true;
    for (size_t k = 0; k < o->contender_count; k++) {
        const char *dot = strrchr(o->contenders[k], '.');

        if (dot && strcmp(dot, strcmp(backend, "cuda") == 0 ? ".cu" : ".cl") == 0)
            return true;
    }
    return false;
}

/* Takes the requested device, if there is one, else the first GPU; one that is not a GPU only if
 * the backend is named. */
static void choose_device(iron__race_plan_device *d, const uint32_t *wanted) {
    iron_error err = {IRON_OK, 0, ""};
    bool is_described = false;
    size_t count = 0;

    if (iron__gpu_probe(d->gpu_backend, &count, &err) != IRON_OK) {
        snprintf(d->reason, sizeof d->reason, "%s", err.text);
        return;
    }
    d->index = wanted ? *wanted : 0;
    for (int wants_gpu = 1; wants_gpu >= 0 && !d->is_available; wants_gpu--)
        for (uint32_t k = 0; k < count && !d->is_available; k++) {
            if ((wanted && k != *wanted) ||
                iron__gpu_describe(d->gpu_backend, k, &d->info, &err) != IRON_OK)
                continue;
            is_described = true;
            d->index = k;
            d->is_available = d->info.is_gpu || (!wants_gpu && d->is_named);
        }
    if (wanted && !is_described)
        snprintf(d->reason, sizeof d->reason, "%s has no device %u; it has %zu", d->backend,
                 *wanted, count);
    else if (!d->is_available)
        snprintf(d->reason, sizeof d->reason,
                 "%s has no GPU here, only %s; name %s in a glob to race on that", d->backend,
                 d->info.name[0] ? d->info.name : "nothing", d->backend);
    d->cache_bytes = d->info.cache_bytes;
}

/* The devices of a backend that were asked for, each once; of all its devices only those that can
 * be used, or one that says why none can. Returns how many there are. */
static size_t find_wanted(const iron__race_plan_device *backend, const iron__gpu_devices *wanted,
                          iron__race_plan_device devices[IRON_PLAN_BACKEND]) {
    size_t count = 0, all = 0;
    bool is_usable = iron__gpu_probe(backend->gpu_backend, &all, NULL) == IRON_OK;

    for (uint32_t k = 0; is_usable && k < (wanted->is_all ? all : wanted->count); k++) {
        uint32_t index = wanted->is_all ? k : wanted->index[k];
        size_t same = 0;

        while (same < count && devices[same].index != index)
            same++;
        if (same < count || count == IRON_PLAN_BACKEND)
            continue;
        devices[count] = *backend;
        choose_device(&devices[count], &index);
        count += devices[count].is_available || !wanted->is_all;
    }
    if (count == 0) {
        devices[count] = *backend;
        choose_device(&devices[count++], NULL);
    }
    for (size_t k = 0; count > 1 && k < count; k++) /* equal devices have equal names */
        iron__append(devices[k].info.name, sizeof devices[k].info.name, " #%u", devices[k].index);
    return count;
}

/* Fills devices and returns how many there are: the CPU first, then at least one per GPU backend,
 * whether it can be used or not. */
static size_t find_devices(const iron_arena_options *o, const iron__gpu_devices *wanted,
                           iron__race_plan_device devices[IRON_PLAN_DEVICES]) {
    iron__race_plan_device *d = &devices[0];
    size_t count = 1;

    *d = (iron__race_plan_device){
        .backend = "cpu", .on = IRON_ON_CPU, .is_cpu = true, .is_available = true};
    iron__cpu_name(d->info.name, sizeof d->info.name);
    d->cache_bytes = d->info.cache_bytes = iron__cpu_last_cache_bytes();
    for (size_t k = 0; k < iron__gpu_backend_count(); k++) {
        iron__race_plan_device backend = {.on = (uint32_t)IRON_ON_CUDA << k, .gpu_backend = k};

        snprintf(backend.backend, sizeof backend.backend, "%s", iron__gpu_backend_name(k));
        backend.is_named = is_named(o, backend.backend);
        count += find_wanted(&backend, wanted, &devices[count]);
    }
    return count;
}

/* Is the name chosen by a glob? Without globs everything is; with contenders from outside, their
 * ops. Marks all globs that choose it as used. */
static bool is_chosen(const planner *p, const char *name) {
    bool is_any = p->o->glob_count == 0 && p->plan->outside_count == 0;

    for (size_t k = 0; p->o->glob_count == 0 && k < p->plan->outside_count; k++)
        is_any = is_any || p->plan->outside[k].op == p->op;
    for (size_t k = 0; k < p->o->glob_count; k++) {
        if (glob_matches(p->o->globs[k], name)) {
            p->is_used[k] = true;
            is_any = true;
        }
    }
    return is_any;
}

/* Adds one row per strategy on GPUs, one on the CPU, each with the reason why it cannot race, if it
 * cannot. Every problem is made in the host's memory first, and an eighth of that is left to
 * others: where the system overcommits memory, using too much of it ends the process. */
static iron_status add_rows(planner *p, iron__race_plan_row row, uint32_t memory, iron_error *err) {
    iron__race_plan *plan = p->plan;
    const iron__race_plan_device *d = &plan->devices[row.device_index];
    const iron__contender *c = &row.contender;
    const iron__case *of = &plan->cases[row.case_index].c;
    uint64_t bytes = of->op->host_bytes ? of->op->host_bytes(of) : iron__op_useful_bytes(of);

    for (uint32_t k = 0; k < IRON_GPU_STRATEGIES; k++) {
        if (d->is_cpu ? k > 0 : !(memory & IRON_BIT(k)))
            continue;
        IRON_FAIL_IF(!IRON_ARRAY_GROW(&plan->rows, plan->row_count, &plan->row_room), err,
                     IRON_E_NOMEM, "out of memory for a plan of %zu rows", plan->row_count + 1);
        row.memory = d->is_cpu ? IRON_GPU_STRATEGIES : (iron__gpu_strategy)k;
        row.reason[0] = '\0';
        if (!d->is_available)
            snprintf(row.reason, sizeof row.reason, "%s", d->reason);
        else if (plan->host_bytes && bytes / 7 > plan->host_bytes / 8)
            snprintf(row.reason, sizeof row.reason,
                     "too large for this machine: %.1f GiB of data, and it has %.1f GiB of memory; "
                     "use a smaller --size",
                     (double)bytes / 0x1p30, (double)plan->host_bytes / 0x1p30);
        else if (c->elements && !(c->elements & IRON_BIT(of->element)))
            snprintf(row.reason, sizeof row.reason, "does not support %s",
                     iron__element_name(of->element));
        else if (d->is_cpu && !iron__cpu_has(c->needs))
            snprintf(row.reason, sizeof row.reason,
                     "this processor lacks an instruction set that it needs");
        else if (!d->is_cpu && d->info.lacks[k][0])
            snprintf(row.reason, sizeof row.reason, "%s: %.200s",
                     iron__gpu_strategy_name(row.memory), d->info.lacks[k]);
        plan->rows[plan->row_count++] = row;
    }
    return IRON_OK;
}

/* The candidates of an op for a device: its contenders, its peers, and those from outside. */
typedef struct candidates {
    size_t contender, peer, outside; /* the next ones */
    iron__race_plan_row row;
} candidates;

/* Fills the row with the next candidate of the current op; false past the last. */
static bool next_candidate(const planner *p, const iron__race_plan_device *d, candidates *c) {
    iron__race_plan_row *row = &c->row;
    const iron_peer *peer;
    char lead[40]; /* of the names of the op's peers on this backend */

    snprintf(lead, sizeof lead, "%s.%s.", p->op->name, d->backend);
    while (iron__op_contender(p->op, c->contender, &row->contender)) {
        c->contender++;
        if (!(row->contender.backends & d->on))
            continue;
        snprintf(row->name, sizeof row->name, "%s.%s.%s", p->op->name, d->backend,
                 row->contender.name);
        return true;
    }
    while ((peer = peers_at(&p->plan->peers, c->peer, NULL))) {
        c->peer++;
        if (strncmp(peer->name, lead, strlen(lead)) != 0)
            continue;
        row->peer = peer;
        snprintf(row->name, sizeof row->name, "%s", peer->name);
        row->contender = (iron__contender){.name = peer->name + strlen(lead),
                                           .idea = peer->idea,
                                           .passes = peer->passes,
                                           .elements = NO_ELEMENT};
        for (uint32_t k = 0; k < IRON_ELEMENTS; k++)
            if (strstr(peer->dtypes, iron__element_name((iron__element)k)))
                row->contender.elements |= IRON_BIT(k);
        return true;
    }
    row->peer = NULL;
    while (c->outside < p->plan->outside_count) {
        iron__outside *o = &p->plan->outside[c->outside++];

        if (o->op != p->op || !(o->on & d->on))
            continue;
        row->outside = o;
        row->contender = (iron__contender){.name = o->name, .idea = o->path, .backends = o->on};
        snprintf(row->name, sizeof row->name, "%s%s", lead, o->name);
        return true;
    }
    return false;
}

/* Does any glob choose something of the current op on that device? */
static bool chooses_device(const planner *p, const iron__race_plan_device *d) {
    candidates c = {.contender = 0};
    bool is_any = false;

    while (next_candidate(p, d, &c))
        is_any = is_chosen(p, c.row.name) || is_any;
    return is_any;
}

/* Does any glob choose something of the current op? */
static bool chooses_op(const planner *p) {
    bool is_any = false;

    for (size_t d = 0; d < p->plan->device_count; d++)
        is_any = chooses_device(p, &p->plan->devices[d]) || is_any;
    return is_any;
}

/* The element types for a size, as bits; 0: the op has none of the requested ones. The user's data
 * race in their own type, or as u32. */
static uint32_t elements_for(const planner *p, const chosen_size *size) {
    uint32_t own = IRON_BIT(p->plan->own.data.element);
    uint32_t wanted = IRON_BIT(size->dtype ? iron__element_find(size->dtype) : p->op->usual);

    if (p->o->data)
        return p->op->elements & own ? own : IRON_BIT(IRON_U32);
    return p->op->elements & (p->elements ? p->elements : wanted);
}

/* The value index of the last axis in combination number *index, which becomes that of the axes
 * before it. The last axis changes fastest. */
static size_t take_last(const axis_values *axis, size_t *index) {
    size_t count = axis->count > 0 ? axis->count : 1, at = *index % count;

    *index /= count;
    return at;
}

/* Sets the values of combination number `index`. */
static void set_values(const grid *g, size_t index, iron__case *c) {
    for (size_t k = c->op->axis_count; k-- > 0;)
        c->at[k] = g->axes[k].at[take_last(&g->axes[k], &index)];
}

/* Adds a case with its rows: contenders and peers, on all devices. */
static iron_status add_case(planner *p, const chosen_size *size, const iron__case *c,
                            iron_error *err) {
    iron__race_plan *plan = p->plan;
    /* an op whose race is about kernels uses pageable memory, unless strategies are requested */
    uint32_t memory = p->op->is_resident && !p->o->memory ? IRON_BIT(IRON_GPU_PAGEABLE) : p->memory;
    iron__race_plan_case *added;

    IRON_FAIL_IF(!IRON_ARRAY_GROW(&plan->cases, plan->case_count, &plan->case_room), err,
                 IRON_E_NOMEM, "out of memory for a plan of %zu cases", plan->case_count + 1);
    IRON_FAIL_IF(plan->case_count == CASES_MAX, err, IRON_E_ARG,
                 "more than %u cases; use fewer sizes or values", CASES_MAX);
    added = &plan->cases[plan->case_count++];
    *added = (iron__race_plan_case){.c = *c, .scopes = p->scopes, .params = iron__params_of(c)};
    if (p->op->is_resident && !p->o->scopes) /* its race is about kernels */
        added->scopes = IRON_BIT(IRON_SCOPE_KERNEL);
    memcpy(added->size_name, size->name, sizeof added->size_name);
    iron__size_text(p->op, size->rows, size->cols, added->size, sizeof added->size);
    added->axes = iron__params_text(&added->params, true);
    for (size_t k = 0; k < plan->device_count; k++) {
        const iron__race_plan_device *d = &plan->devices[k];
        candidates next = {.row = {.case_index = plan->case_count - 1, .device_index = k}};

        while (next_candidate(p, d, &next)) {
            const iron__contender *row = &next.row.contender;
            uint32_t in = memory;

            /* a list shows every contender, whatever the case */
            if ((!p->o->is_listing && row->suits && !row->suits(row, &added->c)) ||
                !is_chosen(p, next.row.name))
                continue;
            if (next.row.outside)
                in = IRON_BIT(IRON_GPU_PAGEABLE);
            else if (next.row.peer) /* it only computes: two ways to copy the inputs are enough */
                in &= IRON_BIT(IRON_GPU_PAGEABLE) | IRON_BIT(IRON_GPU_PINNED);
            if (!d->is_available && !d->is_named) /* shown only if a glob names its backend */
                p->absent = d;
            else
                IRON_TRY(add_rows(p, next.row, in, err));
        }
    }
    return IRON_OK;
}

static void add_remark(iron__race_plan *plan, const char *kind, const char *what,
                       const char *reason) {
    bool is_said = strncmp(reason, what, strlen(what)) == 0; /* many reasons begin with it */

    if (plan->remark_count < REMARKS_MAX)
        snprintf(plan->remarks[plan->remark_count++], sizeof plan->remarks[0], "%s: %s%s%s", kind,
                 is_said ? "" : what, is_said ? "" : ": ", reason);
}

/* There must be a case, and every value that was requested by name must be in one. If not, the op
 * says why; an op that the size alone does not suit is passed over. */
static iron_status add_grid(planner *p, const grid *g, const chosen_size *size,
                            iron__element element, iron_error *err) {
    iron__case c = {.op = p->op,
                    .rows = size->rows,
                    .cols = size->cols,
                    .element = element,
                    .seed = p->o->data ? 0 : p->o->seed,
                    .data = p->o->data ? &p->plan->own.data : NULL};
    bool is_any = false, is_planned[IRON_OP_AXES][AXIS_VALUES_MAX] = {{false}}, is_asked = false;
    iron_error why;

    if (p->op->vocab_usual && element == IRON_U32)
        c.vocab = p->o->data ? p->plan->own.vocab : p->o->vocab ? p->o->vocab : p->op->vocab_usual;
    for (size_t k = 0; k < g->count; k++) {
        set_values(g, k, &c);
        if (p->op->accept(&c, &why) != IRON_OK)
            continue;
        IRON_TRY(add_case(p, size, &c, err));
        is_any = true;
        for (size_t axis = p->op->axis_count, index = k; axis-- > 0;)
            is_planned[axis][take_last(&g->axes[axis], &index)] = true;
    }
    set_values(g, 0, &c);
    for (size_t k = 0; k < p->op->axis_count; k++)
        is_asked = is_asked || g->axes[k].is_asked;
    if (!is_any && (is_asked || !p->o->sizes))
        return p->op->accept(&c, err);
    if (!is_any) {
        p->op->accept(&c, p->refused++ ? &why : &p->refusal);
        return IRON_OK;
    }
    for (size_t k = 0; k < p->op->axis_count; k++)
        for (size_t v = 0; g->axes[k].is_asked && v < g->axes[k].count; v++) {
            if (is_planned[k][v])
                continue;
            c.at[k] = g->axes[k].at[v];
            return p->op->accept(&c, err);
        }
    return IRON_OK;
}

/* Adds the cases of the current op, each with its rows. */
static iron_status add_cases(planner *p, iron_error *err) {
    chosen_size sizes[SIZES_MAX] = {{0}};
    size_t count = 1, before = p->plan->case_count;
    uint32_t all = 0;
    char reason[240];
    grid g = {.count = 1};
    const iron_arena_options *o = p->o;
    bool is_wide = (o->glob_count > 0 || o->contender_count > 0) && !o->is_listing;

    p->refused = 0;
    /* without a glob a race is over everything, and each axis has its telling value only */
    for (size_t k = 0; k < p->op->axis_count; k++) {
        const iron__axis *axis = &p->op->axes[k];

        if (o->data && strcmp(axis->name, DATA_AXIS) == 0) {
            g.axes[k] = (axis_values){.count = 1};
            continue;
        }
        IRON_TRY(choose_values(p->op, axis, o->params, o->param_count, is_wide, &g.axes[k], err));
        g.count *= g.axes[k].count;
        for (size_t n = 0; n < o->param_count; n++)
            p->is_known[n] = p->is_known[n] || is_about_axis(o->params[n], axis);
    }
    if (o->sizes) {
        IRON_TRY(parse_sizes(p->op, o->sizes, sizes, &count, err));
    } else if (o->data) {
        sizes[0] = (chosen_size){.rows = p->plan->own.data.count, .cols = 1};
    } else { /* it depends on the caches of the devices that take part */
        uint64_t cache = 0;
        bool has_gpu = false;
        uint32_t elements = elements_for(p, &sizes[0]);
        iron__element element = p->op->usual;

        if (elements && !(elements & IRON_BIT(element)))
            element = (iron__element)__builtin_ctz(elements);
        for (size_t k = 0; k < p->plan->device_count; k++) {
            const iron__race_plan_device *d = &p->plan->devices[k];

            if (!d->is_available || !chooses_device(p, d))
                continue;
            has_gpu = has_gpu || d->info.is_gpu;
            cache = d->cache_bytes > cache ? d->cache_bytes : cache;
        }
        iron__op_usual_size(p->op, cache, has_gpu, element, &sizes[0].rows, &sizes[0].cols);
    }
    for (size_t k = 0; k < count; k++) {
        uint32_t elements = elements_for(p, &sizes[k]);

        all |= elements;
        for (iron__element e = 0; e < IRON_ELEMENTS; e++)
            if (elements & IRON_BIT(e))
                IRON_TRY(add_grid(p, &g, &sizes[k], e, err));
    }
    if (p->refused)
        snprintf(reason, sizeof reason, "%zu of %zu sizes and types: %.180s", p->refused,
                 p->plan->case_count - before + p->refused, p->refusal.text);
    else if (count == 0)
        snprintf(reason, sizeof reason,
                 "--size %.80s does not fit: it takes %s, or a name of --list", p->o->sizes,
                 p->op->is_line ? "a number of elements" : "ROWSxCOLS");
    else
        snprintf(reason, sizeof reason, "it has no --dtype %.40s", p->o->dtype ? p->o->dtype : "");
    if (p->refused || count == 0 || !all)
        add_remark(p->plan, "passed over", p->op->name, reason);
    return IRON_OK;
}

/* Op number `index` of the build, then of the user's files; NULL past the last. */
static const iron__op *plan_op_at(const iron__race_plan *plan, size_t index) {
    size_t count = 0;

    while (count < index && plan->op_at(count))
        count++;
    if (plan->op_at(count))
        return plan->op_at(count);
    return index - count < plan->own_op_count ? plan->own_ops[index - count] : NULL;
}

/* No chosen op has the requested sizes or types. */
static iron_status refuse_cases(planner *p, iron_error *err) {
    const iron_arena_options *o = p->o;
    char types[160] = ""; /* of the chosen ops */

    for (size_t k = 0; (p->op = plan_op_at(p->plan, k)); k++) {
        if (!chooses_op(p))
            continue;
        for (iron__element e = 0; e < IRON_ELEMENTS; e++)
            if (p->op->elements & IRON_BIT(e))
                iron__append(types, sizeof types, "%s%s", types[0] ? " " : "",
                             iron__element_name(e));
        iron__append(types, sizeof types, " (%s)", p->op->name);
    }
    IRON_FAIL(err, IRON_E_ARG,
              "no chosen op has %s%.40s%s%s%.10s; iron arena --list shows sizes, types are %s",
              o->sizes ? "size " : "", o->sizes ? o->sizes : "",
              o->sizes && o->dtype ? " with " : "", o->dtype ? "dtype " : "",
              o->dtype ? o->dtype : "", types);
}

#define BYTES_PER_TOKEN 8u /* here, and in a problem, which has a copy in its own type */
#define VOCAB_USUAL     50257u
#define VOCAB_MAX       (UINT64_C(1) << 31)

/* Reads the first `wanted` tokens of the user's (0: as many as fit, with their copy, into half of
 * the machine's memory): once, since the vocabulary is a part of every case. With a vocab all must
 * be below it, without one (0) it is found. IRON_E_ARG. */
static iron_status own_data_read(iron__own_data *own, const iron_arena_data *from, uint64_t wanted,
                                 uint32_t vocab, uint64_t host_bytes, iron_error *err) {
    iron__op_data *d = &own->data;
    uint64_t most = host_bytes ? host_bytes / 2 / BYTES_PER_TOKEN : UINT64_MAX, least = 0, at = 0;
    const char *slash;

    IRON_FAIL_IF(from->struct_size != sizeof *from, err, IRON_E_ARG,
                 "an arena's data have %u bytes, which is another version", from->struct_size);
    d->element = iron__element_find(from->dtype);
    slash = strrchr(from->file, '/');
    snprintf(d->name, sizeof d->name, "%s", slash && slash[1] ? slash + 1 : from->file);
    for (char *c = d->name; *c; c++)
        if ((unsigned char)*c <= ' ' || strchr("/,=\"'", *c))
            *c = '_'; /* it must be one word */
    snprintf(own->file, sizeof own->file, "%s", from->file);
    own->total = from->tokens;
    IRON_FAIL_IF(from->tokens == 0, err, IRON_E_ARG, "%.180s has no tokens to race over",
                 own->file);
    if (most > from->tokens)
        most = from->tokens;
    IRON_FAIL_IF(wanted > most, err, IRON_E_ARG,
                 "--size %" PRIu64 " is more than the %" PRIu64 " tokens of %.120s%s", wanted, most,
                 own->file, most < from->tokens ? " that fit into memory" : "");
    d->count = wanted ? wanted : most;
    own->bytes = (size_t)d->count * sizeof *d->tokens;
    own->tokens = iron__allocate_large(own->bytes, err);
    if (!own->tokens)
        return IRON_E_NOMEM;
    d->tokens = own->tokens;
    IRON_TRY(from->read(from->context, own->tokens, (size_t)d->count, err));
    for (uint64_t k = 0; k < d->count; k++) /* every id must be below the vocabulary */
        if (d->tokens[k] >= least) {
            least = d->tokens[k] + UINT64_C(1);
            at = k;
        }
    IRON_FAIL_IF(least > (vocab ? vocab : VOCAB_MAX), err, IRON_E_ARG,
                 "%.100s: token %" PRIu64 " at position %" PRIu64 " is not below %s%" PRIu64,
                 own->file, least - 1, at, vocab ? "--vocab " : "the largest vocabulary, ",
                 vocab ? vocab : VOCAB_MAX);
    own->vocab = vocab ? vocab : (uint32_t)(least > VOCAB_USUAL ? least : VOCAB_USUAL);
    return IRON_OK;
}

/* Reads the user's tokens, as many as the sizes need. */
static iron_status read_data(planner *p, iron_error *err) {
    const iron_arena_options *o = p->o;
    chosen_size sizes[SIZES_MAX] = {{0}};
    uint64_t wanted = 0;
    size_t count;

    IRON_FAIL_IF(o->dtype, err, IRON_E_ARG, "dtype %.20s: data race in their own type", o->dtype);
    for (size_t k = 0; k < o->param_count; k++)
        IRON_FAIL_IF(strncmp(o->params[k], DATA_AXIS "=", sizeof DATA_AXIS) == 0, err, IRON_E_ARG,
                     "--data FILE and --param %.60s exclude each other", o->params[k]);
    for (size_t k = 0; o->sizes && (p->op = plan_op_at(p->plan, k)); k++) {
        if (!p->op->takes_data)
            continue;
        IRON_TRY(parse_sizes(p->op, o->sizes, sizes, &count, err));
        for (size_t s = 0; s < count && chooses_op(p); s++)
            wanted = sizes[s].rows > wanted ? sizes[s].rows : wanted;
    }
    return own_data_read(&p->plan->own, o->data, wanted, o->vocab, p->plan->host_bytes, err);
}

/* A requested vocabulary must be that of a case; types that have none are named. */
static iron_status check_vocab(planner *p, iron_error *err) {
    const iron__race_plan *plan = p->plan;
    char without[160] = "";
    bool is_used = false;

    for (size_t k = 0; k < plan->case_count; k++) {
        const iron__case *c = &plan->cases[k].c, *last = k > 0 ? &plan->cases[k - 1].c : NULL;

        is_used = is_used || c->vocab;
        if (!c->vocab && !(last && last->op == c->op && last->element == c->element))
            iron__append(without, sizeof without, "%s%s %s", without[0] ? ", " : "", c->op->name,
                         iron__element_name(c->element));
    }
    if (!p->o->vocab || p->o->is_listing)
        return IRON_OK;
    IRON_FAIL_IF(!is_used, err, IRON_E_ARG,
                 "--vocab %u applies only to tokens of type u32, not to %s; leave it out, or use "
                 "--dtype u32",
                 p->o->vocab, without);
    if (without[0])
        add_remark(p->plan, "without --vocab", without, "a vocabulary is for tokens of type u32");
    return IRON_OK;
}

static iron_status add_ops(planner *p, iron_error *err) {
    const iron_arena_options *o = p->o;
    const iron__own_data *own = &p->plan->own;
    iron_error why = {IRON_OK, 0, ""};
    char others[240] = ""; /* ops that take no data */
    char names[160] = "";  /* the axes of the chosen ops */
    bool has_op = false;

    if (p->o->data)
        IRON_TRY(read_data(p, err));
    for (size_t k = 0; (p->op = plan_op_at(p->plan, k)); k++) {
        if (!chooses_op(p))
            continue;
        if (o->data && !p->op->takes_data) {
            iron__append(others, sizeof others, "%s%s", others[0] ? ", " : "", p->op->name);
            continue;
        }
        if (o->data) {
            iron__case c = {.op = p->op,
                            .rows = own->data.count,
                            .cols = 1,
                            .vocab = own->vocab,
                            .data = &own->data};

            c.element =
                (iron__element)__builtin_ctz(elements_for(p, &(chosen_size){.rows = c.rows}));
            if (p->op->accept(&c, &why) != IRON_OK) {
                add_remark(p->plan, "passed over", p->op->name, why.text);
                continue;
            }
        }
        has_op = true;
        IRON_TRY(add_cases(p, err));
    }
    if (others[0])
        add_remark(p->plan, "passed over", others, "not for --data");
    for (size_t k = 0; k < o->glob_count; k++)
        IRON_FAIL_IF(!p->is_used[k], err, IRON_E_ARG,
                     "no contender matches '%.60s'; iron arena --list shows them all", o->globs[k]);
    for (size_t k = 0; k < o->param_count; k++) {
        if (p->is_known[k])
            continue;
        for (size_t n = 0; (p->op = plan_op_at(p->plan, n)); n++)
            for (size_t a = 0; chooses_op(p) && a < p->op->axis_count; a++)
                iron__append(names, sizeof names, "%s%s (%s)", names[0] ? ", " : "",
                             p->op->axes[a].name, p->op->name);
        IRON_FAIL(err, IRON_E_ARG, "no chosen op has the parameter '%.*s'; they have %s",
                  (int)(strcspn(o->params[k], "=") < 40 ? strcspn(o->params[k], "=") : 40),
                  o->params[k], names[0] ? names : "none");
    }
    IRON_FAIL_IF(!has_op && p->o->data, err, IRON_E_ARG,
                 "no chosen op can race over %.100s: %.120s", p->plan->own.file,
                 why.text[0] ? why.text : "choose tokens, seal or histogram");
    IRON_FAIL_IF(!has_op, err, IRON_E_UNSUPPORTED, "this build has no ops to race");
    IRON_FAIL_IF(p->plan->case_count == 0 && p->refusal.status != IRON_OK, err, p->refusal.status,
                 "%s", p->refusal.text);
    if (p->plan->case_count == 0)
        return refuse_cases(p, err);
    IRON_TRY(check_vocab(p, err));
    IRON_FAIL_IF(p->plan->row_count == 0 && p->absent, err, IRON_E_UNSUPPORTED,
                 "no contender can race: %.200s", p->absent->reason);
    IRON_FAIL_IF(p->plan->row_count == 0, err, IRON_E_ARG,
                 "no chosen contender is for these cases; use other globs, or another --param or "
                 "--memory");
    return IRON_OK;
}

#define OUTSIDE_MAX 256u

/* Reads the contenders from outside, one for each combination of what they are compiled with. */
static iron_status add_outside(const iron_arena_options *o, iron__race_plan *plan,
                               iron_error *err) {
    size_t counts[IRON_OUTSIDE_DEFINES], combinations = 1;

    /* the ops that the files bring: each once, however often its contender is compiled */
    plan->own_ops = calloc(o->contender_count + 1, sizeof(iron__op *));
    if (!plan->own_ops)
        return iron__no_memory(err, "contenders");
    for (size_t k = 0; k < o->contender_count; k++) {
        iron__op *op;

        IRON_TRY(iron__outside_op_create(o->contenders[k], o->command, &op, err));
        if (!op)
            continue;
        plan->own_ops[plan->own_op_count++] = op;
        for (size_t other = 0; other + 1 < plan->own_op_count; other++)
            IRON_FAIL_IF(strcmp(plan->own_ops[other]->name, op->name) == 0, err, IRON_E_ARG,
                         "two files bring the op %s; name one file", op->name);
    }
    IRON_FAIL_IF(o->define_count > 4, err, IRON_E_ARG, "more than four --define");
    IRON_FAIL_IF(o->define_count > 0 && o->contender_count == 0, err, IRON_E_ARG,
                 "--define is for a --contender");
    for (size_t k = 0; k < o->define_count; k++) {
        /* NAME=V,...: each value is of digits, letters and dots, so that it needs no quotes
         * anywhere */
        size_t length = strcspn(o->defines[k], "=");
        const char *list = o->defines[k] + length + 1;
        char value[WORD_ROOM];

        counts[k] = 0;
        IRON_FAIL_IF(length == 0 || length >= sizeof((iron__define *)NULL)->name ||
                         !o->defines[k][length] ||
                         strspn(o->defines[k], IRON_OUTSIDE_NAME) != length ||
                         strcspn(o->defines[k], "-") < length,
                     err, IRON_E_ARG, "--define '%.60s' is not NAME=VALUE,...", o->defines[k]);
        while (next_word(&list, value)) {
            IRON_FAIL_IF(!value[0] || value[strspn(value, IRON_OUTSIDE_NAME ".+")], err, IRON_E_ARG,
                         "--define '%.60s': '%.30s' is not a number or name", o->defines[k], value);
            counts[k]++;
        }
        combinations *= counts[k];
    }
    IRON_FAIL_IF(o->contender_count * combinations > OUTSIDE_MAX || combinations > OUTSIDE_MAX, err,
                 IRON_E_ARG, "more than %u contenders and combinations; use fewer values",
                 OUTSIDE_MAX);
    plan->outside = calloc(o->contender_count * combinations + 1, sizeof *plan->outside);
    if (!plan->outside)
        return iron__no_memory(err, "contenders");
    for (size_t k = 0; k < o->contender_count * combinations; k++) {
        iron__outside *to = &plan->outside[plan->outside_count++];
        size_t at = k % combinations;

        IRON_TRY(iron__outside_read(o->contenders[k / combinations], to, err));
        if (!to->has_contender) {
            iron__outside_deinit(to);
            plan->outside_count--;
            continue;
        }
        for (size_t d = 0; d < o->define_count; d++) {
            iron__define *define = &to->defines.list[to->defines.count];
            size_t length = strcspn(o->defines[d], "=");
            const char *list = o->defines[d] + length + 1;
            char value[WORD_ROOM] = "";

            for (size_t n = 0; n <= at % counts[d] && next_word(&list, value); n++)
                ;
            snprintf(define->name, sizeof define->name, "%.*s", (int)length, o->defines[d]);
            snprintf(define->value, sizeof define->value, "%s", value);
            iron__append(to->name, sizeof to->name, "%s%s=%s", to->defines.count ? "," : ".",
                         define->name, define->value);
            to->defines.count++;
            at /= counts[d];
        }
        IRON_TRY(iron__outside_resolve(to, (const iron__op *const *)plan->own_ops,
                                       plan->own_op_count, err));
        for (size_t other = 0; other + 1 < plan->outside_count; other++)
            IRON_FAIL_IF(strcmp(plan->outside[other].name, to->name) == 0 &&
                             plan->outside[other].on == to->on && plan->outside[other].op == to->op,
                         err, IRON_E_ARG, "two contenders are named %s; rename a file", to->name);
    }
    IRON_FAIL_IF(o->contender_count > 0 && plan->outside_count == 0, err, IRON_E_ARG,
                 "%.120s has an op and no contender; race it with a --contender for the op",
                 o->contenders[0]);
    return IRON_OK;
}

static iron_status fill_plan(planner *p, iron_error *err) {
    iron_cpu_info cpu = {.struct_size = sizeof cpu};
    iron__race_plan *plan = p->plan;
    iron__gpu_devices wanted;
    double race = p->o->seconds > 0 ? p->o->seconds : IRON_SECONDS_DEFAULT, shares;
    uint32_t threads = p->o->threads ? p->o->threads : iron__cpu_threads();

    IRON_TRY(parse_memory(p->o->memory, &p->memory, err));
    IRON_TRY(parse_scopes(p->o->scopes, &p->scopes, err));
    IRON_TRY(parse_dtypes(p->o->dtype, &p->elements, err));
    IRON_TRY(check_params(p->o->params, p->o->param_count, err));
    IRON_TRY(peers_open(&plan->peers, err));
    IRON_TRY(add_outside(p->o, plan, err));
    plan->remarks = calloc(REMARKS_MAX, sizeof plan->remarks[0]);
    IRON_FAIL_IF(!plan->remarks, err, IRON_E_NOMEM, "out of memory for a plan");
    IRON_TRY(iron__gpu_devices_parse(p->o->devices, p->o->device, &wanted, err));
    if (!p->o->devices && !p->o->has_device)
        wanted.count = 0; /* the first GPU */
    plan->device_count = find_devices(p->o, &wanted, plan->devices);
    if (iron_cpu_describe(&cpu, NULL) == IRON_OK)
        plan->host_bytes = cpu.memory_bytes;
    IRON_TRY(add_ops(p, err));
    shares = RUNS_PER_CASE * (double)plan->case_count;
    /* rows whose runs take too long for their case's share of the time are skipped */
    for (size_t k = 0; k < plan->row_count; k++) {
        iron__race_plan_row *row = &plan->rows[k];
        const iron__race_plan_device *d = &plan->devices[row->device_index];
        const iron__contender *c = &row->contender;
        double one;
        char about[32];

        if (row->reason[0] || !c->seconds)
            continue;
        one = c->seconds(c, &plan->cases[row->case_index].c, d->is_cpu ? NULL : &d->info, threads);
        if (one <= race / shares)
            continue;
        snprintf(about, sizeof about, one < 10 ? "%.2g" : "%.0f", one);
        snprintf(row->reason, sizeof row->reason,
                 "one run would take about %s s; use a smaller --size, or --time %.0f or more",
                 about, one * shares + 0.5);
    }
    for (size_t k = 0; k < plan->device_count; k++)
        if (!plan->devices[k].is_available)
            add_remark(plan, "unavailable", plan->devices[k].backend, plan->devices[k].reason);
    for (size_t k = 0; k < plan->peers.count; k++) {
        const iron__peer_library *peer = &plan->peers.libraries[k];

        if (!peer->list)
            add_remark(plan, "unavailable", peer->path[0] ? peer->path : "peers", peer->reason);
    }
    return IRON_OK;
}

/* Takes a struct of zeros, too. */
static void plan_deinit(iron__race_plan *plan) {
    peers_close(&plan->peers);
    iron__release_large(plan->own.tokens, plan->own.bytes);
    for (size_t k = 0; k < plan->outside_count; k++)
        iron__outside_deinit(&plan->outside[k]);
    free(plan->outside);
    for (size_t k = 0; k < plan->own_op_count; k++)
        iron__outside_op_free(plan->own_ops[k]);
    free(plan->own_ops);
    free(plan->cases);
    free(plan->rows);
    free(plan->remarks);
    *plan = (iron__race_plan){.op_at = NULL};
}

/* Plans a race over the ops of op_at: iron__op_at, except in tests. */
static iron_status plan_make(iron__race_plan *plan, const iron_arena_options *options,
                             iron__op_lister op_at, iron_error *err) {
    planner p = {.plan = plan, .o = options};
    iron_status status;

    *plan = (iron__race_plan){.op_at = op_at};
    p.is_used = calloc(options->glob_count + options->param_count + 1, sizeof *p.is_used);
    if (!p.is_used)
        return iron__no_memory(err, "a plan");
    p.is_known = p.is_used + options->glob_count;
    status = fill_plan(&p, err);
    free(p.is_used);
    if (status != IRON_OK)
        plan_deinit(plan);
    return status;
}

void iron_arena_options_init(iron_arena_options *options) {
    *options = (iron_arena_options){.struct_size = sizeof *options, .seed = 1};
}

/* The command that repeats the race. */
static void write_command(const iron_arena_options *o, char *command, size_t size) {
    snprintf(command, size, "iron arena");
    for (size_t k = 0; k < o->glob_count; k++)
        iron__append(command, size, " '%s'", o->globs[k]);
    if (o->data)
        iron__append(command, size, " %s", o->data->arguments);
    if (o->sizes)
        iron__append(command, size, " --size '%s'", o->sizes);
    if (o->dtype)
        iron__append(command, size, " --dtype %s", o->dtype);
    for (size_t k = 0; k < o->param_count; k++)
        iron__append(command, size, " --param '%s'", o->params[k]);
    for (size_t k = 0; k < o->contender_count; k++)
        iron__append(command, size, " --contender '%s'", o->contenders[k]);
    for (size_t k = 0; k < o->define_count; k++)
        iron__append(command, size, " --define '%s'", o->defines[k]);
    if (o->memory)
        iron__append(command, size, " --memory %s", o->memory);
    if (o->scopes)
        iron__append(command, size, " --scope %s", o->scopes);
    if (o->vocab)
        iron__append(command, size, " --vocab %u", o->vocab);
    if (o->devices)
        iron__append(command, size, " --device %s", o->devices);
    else if (o->has_device)
        iron__append(command, size, " --device %u", o->device);
    if (o->threads)
        iron__append(command, size, " --threads %u", o->threads);
    if (o->streams)
        iron__append(command, size, " --streams %u", o->streams);
    iron__append(command, size, " --seed %" PRIu64, o->seed);
    if (o->runs)
        iron__append(command, size, " --runs %u", o->runs);
    else if (o->seconds > 0)
        iron__append(command, size, " --time %g", o->seconds);
}

/* iron_arena_open over the ops of op_at: tests bring their own. */
static iron_status open_arena(const iron_arena_options *o, iron__op_lister op_at, iron_arena **out,
                              iron_error *err) {
    iron_arena *a;
    iron_status status;
    size_t rows;

    *out = NULL;
    IRON_FAIL_IF(
        o->struct_size != sizeof *o, err, IRON_E_ARG,
        "arena options have %u bytes, which is another version; call iron_arena_options_init",
        o->struct_size);
    IRON_FAIL_IF(o->threads > IRON_THREADS_MAX, err, IRON_E_ARG,
                 "threads is %u; it must be at most %u", o->threads, IRON_THREADS_MAX);
    IRON_FAIL_IF(o->streams > 32, err, IRON_E_ARG, "streams is %u; it must be 1 to 32", o->streams);
    IRON_FAIL_IF(o->runs > IRON_SAMPLES_MAX, err, IRON_E_ARG, "runs is %u; it must be at most %u",
                 o->runs, IRON_SAMPLES_MAX);
    a = calloc(1, sizeof *a);
    if (!a)
        return iron__no_memory(err, "an arena");
    a->options = *o;
    status = plan_make(&a->plan, o, op_at, err);
    if (status != IRON_OK)
        goto done;
    rows = a->plan.row_count;
    a->race_rows = calloc(rows + 1, sizeof *a->race_rows);
    a->kernels = calloc(rows + 1, sizeof *a->kernels);
    a->ceiling_samples = calloc(IRON_CEILINGS_MAX, sizeof *a->ceiling_samples);
    a->report.ceilings = calloc(IRON_CEILINGS_MAX, sizeof *a->report.ceilings);
    a->report.devices = calloc(IRON_PLAN_DEVICES, sizeof *a->report.devices);
    a->report.rows = calloc(rows + 1, sizeof *a->report.rows);
    if (!a->race_rows || !a->kernels || !a->ceiling_samples || !a->report.ceilings ||
        !a->report.devices || !a->report.rows)
        status = iron__fail(err, IRON_E_NOMEM, 0, "out of memory for an arena of %zu rows", rows);
    a->report.own = a->plan.own.tokens ? &a->plan.own : NULL;
    write_command(o, a->report.command, sizeof a->report.command);
done:
    if (status != IRON_OK)
        iron_arena_close(a);
    else
        *out = a;
    return status;
}

iron_status iron_arena_open(const iron_arena_options *options, iron_arena **out, iron_error *err) {
    return open_arena(options, iron__op_at, out, err);
}

void iron_arena_close(iron_arena *arena) {
    if (!arena)
        return;
    for (size_t k = 0; arena->race_rows && k < arena->plan.row_count; k++)
        iron__race_row_deinit(&arena->race_rows[k]);
    for (size_t k = 0; arena->ceiling_samples && k < IRON_CEILINGS_MAX; k++)
        iron__samples_deinit(&arena->ceiling_samples[k]);
    free(arena->ceiling_samples);
    free(arena->race_rows);
    free(arena->kernels);
    free(arena->report.ceilings);
    free(arena->report.devices);
    free(arena->report.rows);
    free(arena->report.comparison);
    plan_deinit(&arena->plan);
    free(arena);
}

size_t iron_arena_count(const iron_arena *arena) { return arena->plan.row_count; }

iron_status iron_arena_at(const iron_arena *arena, size_t index, iron_arena_row *row,
                          iron_error *err) {
    const iron__race_plan_row *r;
    const iron__race_plan_case *c;

    IRON_FAIL_IF(index >= arena->plan.row_count, err, IRON_E_ARG,
                 "row %zu does not exist; there are %zu", index, arena->plan.row_count);
    IRON_FAIL_IF(row->struct_size != sizeof *row, err, IRON_E_ARG,
                 "an arena row has %u bytes, which is another version", row->struct_size);
    r = &arena->plan.rows[index];
    c = &arena->plan.cases[r->case_index];
    *row = (iron_arena_row){.struct_size = sizeof *row,
                            .name = r->name,
                            .memory = iron__race_plan_memory(r),
                            .device = arena->plan.devices[r->device_index].info.name,
                            .size = c->size,
                            .size_name = c->size_name,
                            .dtype = iron__element_name(c->c.element),
                            .idea = r->contender.idea,
                            .params = c->axes.text,
                            .is_peer = r->peer != NULL,
                            .is_outside = r->outside != NULL,
                            .reason = r->reason,
                            .bytes = iron__op_useful_bytes(&c->c)};
    return IRON_OK;
}

const char *iron_arena_remark(const iron_arena *arena, size_t index) {
    return index < arena->plan.remark_count ? arena->plan.remarks[index] : NULL;
}

int iron_arena_has_raced(const iron_arena *arena) { return arena->has_raced; }

iron_status iron_cache_folder(char *path, size_t size, iron_error *err) {
    char *found = iron__cache_folder();
    size_t length = found ? strlen(found) : 0;
    bool is_known = found != NULL, fits = length < size;

    if (size > 0)
        snprintf(path, size, "%s", is_known && fits ? found : "");
    free(found);
    IRON_FAIL_IF(!is_known, err, IRON_E_UNSUPPORTED,
                 "no cache folder is known; set IRON_CACHE_DIR to one");
    IRON_FAIL_IF(!fits, err, IRON_E_ARG, "the cache folder's name has %zu bytes, which do not fit",
                 length);
    return IRON_OK;
}
