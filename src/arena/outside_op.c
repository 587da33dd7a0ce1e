/* SPDX-License-Identifier: MIT */
/*
 * outside_op.c: ops that the user's files bring: what their lines "iron: ..." say (iron_peer.h
 * lists them), and the expressions in such lines. The functions that make data and check answers
 * run in processes of their own (outside.c).
 */
#include "arena/outside.h"
#include "core/fail.h"

#include <ctype.h>

/* Expressions: a sum of products of numbers, names and parentheses. */
typedef struct expression {
    const iron__outside_names *names;
    const char *at;
    bool is_wrong;
} expression;

static uint64_t sum_at(expression *e);

static char next_sign(expression *e) {
    while (*e->at == ' ' || *e->at == '\t')
        e->at++;
    return *e->at;
}

static bool is_word(const char *word, const char *at, size_t length) {
    return strlen(word) == length && strncmp(word, at, length) == 0;
}

static uint64_t name_at(expression *e) {
    const iron__outside_names *n = e->names;
    const char *word = e->at;
    size_t length = 0;
    uint64_t value;
    char *end;

    while (isalnum((unsigned char)word[length]) || word[length] == '_')
        length++;
    e->at += length;
    for (size_t k = 0; k < n->defines->count; k++)
        if (is_word(n->defines->list[k].name, word, length)) {
            value = strtoull(n->defines->list[k].value, &end, 10);
            e->is_wrong = e->is_wrong || *end;
            return value;
        }
    if (is_word("rows", word, length))
        return n->rows;
    if (is_word("cols", word, length))
        return n->cols;
    e->is_wrong = e->is_wrong || !is_word("element", word, length);
    return n->element_bytes;
}

static uint64_t factor_at(expression *e) {
    uint64_t value;
    char *end;

    if (next_sign(e) == '(') {
        e->at++;
        value = sum_at(e);
        e->is_wrong = e->is_wrong || next_sign(e) != ')';
        e->at += *e->at == ')';
        return value;
    }
    if (!isdigit((unsigned char)*e->at))
        return name_at(e);
    value = strtoull(e->at, &end, 10);
    e->at = end;
    return value;
}

static uint64_t product_at(expression *e) {
    uint64_t value = factor_at(e);

    for (char sign = next_sign(e); sign == '*' || sign == '/' || sign == '%'; sign = next_sign(e)) {
        uint64_t other;

        e->at++;
        other = factor_at(e);
        if (sign == '*') {
            e->is_wrong = __builtin_mul_overflow(value, other, &value) || e->is_wrong;
        } else if (other == 0) {
            e->is_wrong = true;
            return 1;
        } else {
            value = sign == '/' ? value / other : value % other;
        }
    }
    return value;
}

static uint64_t sum_at(expression *e) {
    uint64_t value = product_at(e);

    for (char sign = next_sign(e); sign == '+' || sign == '-'; sign = next_sign(e)) {
        uint64_t other;

        e->at++;
        other = product_at(e);
        e->is_wrong = (sign == '+' ? __builtin_add_overflow(value, other, &value)
                                   : __builtin_sub_overflow(value, other, &value)) ||
                      e->is_wrong;
    }
    return value;
}

iron_status iron__outside_evaluate(const char *text, const iron__outside_names *names,
                                   uint64_t least, uint64_t most, uint64_t *value,
                                   iron_error *err) {
    expression e = {names, text, false};

    *value = sum_at(&e);
    IRON_FAIL_IF(next_sign(&e) != '\0' || e.is_wrong, err, IRON_E_FORMAT,
                 "'%.80s' cannot be computed; use numbers, rows, cols, element, defined names and "
                 "+ - * / %% ( )",
                 text);
    IRON_FAIL_IF(*value < least || *value > most, err, IRON_E_FORMAT,
                 "'%.80s' is %" PRIu64 "; it must be %" PRIu64 " to %" PRIu64, text, *value, least,
                 most);
    return IRON_OK;
}

/* The functions of the op. */

#define ROWS_MAX  (UINT64_C(1) << 38)
#define BYTES_MAX (UINT64_C(1) << 40)

static const iron__outside_op *op_of(const iron__case *c) {
    return (const iron__outside_op *)c->op;
}

iron_status iron__outside_op_sizes(const iron__case *c, iron__outside_sizes *sizes,
                                   iron_error *err) {
    const iron__outside_op *o = op_of(c);
    const iron__defines d = iron__outside_defines(&o->module, c);
    const iron__outside_names names = {c->rows, c->cols, iron__element_bytes(c->element), &d};
    const struct {
        const char *line;
        uint64_t *value;
    } all[] = {{o->inputs[0], &sizes->inputs[0]}, {o->inputs[1], &sizes->inputs[1]},
               {o->inputs[2], &sizes->inputs[2]}, {o->inputs[3], &sizes->inputs[3]},
               {o->output, &sizes->output},       {o->reference, &sizes->reference},
               {o->bytes, &sizes->useful}};
    iron_error why = {IRON_OK, 0, ""};

    *sizes = (iron__outside_sizes){.useful = 0};
    for (size_t k = 0; k < COUNT(all); k++)
        IRON_FAIL_IF(all[k].line[0] && iron__outside_evaluate(all[k].line, &names, 1, BYTES_MAX,
                                                              all[k].value, &why) != IRON_OK,
                     err, IRON_E_ARG, "%s: %.200s", c->op->name, why.text);
    return IRON_OK;
}

static uint64_t useful_bytes(const iron__case *c) {
    iron__outside_sizes sizes;

    return iron__outside_op_sizes(c, &sizes, NULL) == IRON_OK ? sizes.useful : 0;
}

static uint64_t host_bytes(const iron__case *c) {
    iron__outside_sizes s;

    iron__outside_op_sizes(c, &s, NULL);
    return s.inputs[0] + s.inputs[1] + s.inputs[2] + s.inputs[3] + s.output + s.reference;
}

static double operations(const iron__case *c) {
    const iron__outside_op *o = op_of(c);
    const iron__defines d = iron__outside_defines(&o->module, c);
    const iron__outside_names names = {c->rows, c->cols, iron__element_bytes(c->element), &d};
    uint64_t value = 0;

    if (o->operations[0])
        iron__outside_evaluate(o->operations, &names, 0, UINT64_MAX, &value, NULL);
    return (double)value;
}

static iron_status accept(const iron__case *c, iron_error *err) {
    iron__outside_sizes sizes;

    IRON_TRY(c->op->is_line ? iron__line_accept(c, ROWS_MAX, err) : iron__matrix_accept(c, err));
    return iron__outside_op_sizes(c, &sizes, err);
}

/* Reading the lines. */

/* Copies the line that begins with `word`; without one, `usual`, and NULL means that it must exist.
 */
static iron_status take_line(const iron__outside_op *o, const char *word, const char *usual,
                             char *line, size_t size, iron_error *err) {
    if (iron__outside_directive(o->lines, word, line, size))
        return IRON_OK;
    IRON_FAIL_IF(!usual, err, IRON_E_ARG, "%.120s: there is no line 'iron: %s ...'", o->module.path,
                 word);
    snprintf(line, size, "%s", usual);
    return IRON_OK;
}

/* "reach 1,2,4": all values are numbers, or all are words. */
static iron_status read_parameter(iron__outside_op *o, const char *line, iron_error *err) {
    size_t index = o->base.axis_count, count = 0, numbers = 0;
    iron__axis *axis = &o->axes[index];
    char *text, *rest = NULL, *end;

    IRON_FAIL_IF(index == IRON_OP_AXES, err, IRON_E_ARG, "%.120s: more than %u parameters",
                 o->module.path, IRON_OP_AXES);
    text = o->axis_texts[index];
    snprintf(text, IRON_OUTSIDE_LINE, "%s", line);
    axis->name = strtok_r(text, " ", &rest);
    axis->about = "parameter of the file";
    axis->is_whole = true;
    for (char *word = strtok_r(NULL, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
        IRON_FAIL_IF(count == IRON_OUTSIDE_VALUES, err, IRON_E_ARG,
                     "%.120s: parameter %.20s has more than %u values", o->module.path, axis->name,
                     IRON_OUTSIDE_VALUES);
        o->words[index][count] = word;
        o->numbers[index][count] = strtod(word, &end);
        axis->is_whole = axis->is_whole && iron__number_is_whole(o->numbers[index][count]);
        numbers += *end == '\0';
        count++;
    }
    IRON_FAIL_IF(!axis->name || count == 0 || (numbers > 0 && numbers < count) ||
                     strlen(axis->name) >= sizeof((iron__param *)NULL)->name ||
                     axis->name[strspn(axis->name, "abcdefghijklmnopqrstuvwxyz0123456789_")] ||
                     strcmp(axis->name, "element") == 0 || strcmp(axis->name, "vocab") == 0,
                 err, IRON_E_ARG,
                 "%.120s: 'iron: parameter %.60s' is not NAME VALUE,... with a name of small "
                 "letters and only words or only numbers",
                 o->module.path, line);
    axis->count = count;
    axis->words = numbers ? NULL : o->words[index];
    axis->numbers = o->numbers[index];
    axis->least = -0x1p53;
    axis->most = 0x1p53;
    o->base.axis_count++;
    return IRON_OK;
}

iron_status iron__outside_op_read(iron__outside_op *o, iron_error *err) {
    char line[IRON_OUTSIDE_LINE], usual_why[400];
    char *rest = NULL;

    IRON_FAIL_IF(!o->name[0] || o->name[strspn(o->name, "abcdefghijklmnopqrstuvwxyz0123456789-")],
                 err, IRON_E_ARG,
                 "%.120s: the op's name '%.30s' must have small letters, digits and - only",
                 o->module.path, o->name);
    IRON_FAIL_IF(iron__op_find(o->name), err, IRON_E_ARG,
                 "%.120s: there is an op '%s' already; use another name", o->module.path, o->name);
    snprintf(usual_why, sizeof usual_why, "An op from %.300s.", o->module.path);
    IRON_TRY(take_line(o, "contract", NULL, o->contract, sizeof o->contract, err));
    IRON_TRY(take_line(o, "why", usual_why, o->why, sizeof o->why, err));
    IRON_TRY(take_line(o, "output", NULL, o->output, sizeof o->output, err));
    IRON_TRY(take_line(o, "reference", o->output, o->reference, sizeof o->reference, err));
    IRON_TRY(take_line(o, "bytes", NULL, o->bytes, sizeof o->bytes, err));
    IRON_TRY(take_line(o, "operations", "", o->operations, sizeof o->operations, err));
    IRON_TRY(take_line(o, "types", "f32", line, sizeof line, err));
    for (char *word = strtok_r(line, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest)) {
        iron__element element = iron__element_find(word);

        IRON_FAIL_IF(element == IRON_ELEMENTS, err, IRON_E_ARG,
                     "%.120s: type '%.20s' is unknown; use f32, f64, u8, u16 or u32",
                     o->module.path, word);
        if (!o->base.elements)
            o->base.usual = element;
        o->base.elements |= IRON_BIT(element);
    }
    for (const char *at = o->lines; (at = iron__outside_directive(at, "input", line, sizeof line));
         o->input_count++) {
        IRON_FAIL_IF(o->input_count == IRON_OP_INPUTS, err, IRON_E_ARG,
                     "%.120s: more than %u inputs", o->module.path, IRON_OP_INPUTS);
        IRON_FAIL_IF(sscanf(line, "%23s %159[^\n]", o->input_names[o->input_count],
                            o->inputs[o->input_count]) != 2,
                     err, IRON_E_ARG, "%.120s: 'iron: input %.60s' is not NAME BYTES",
                     o->module.path, line);
    }
    IRON_FAIL_IF(o->input_count == 0, err, IRON_E_ARG,
                 "%.120s: there is no line 'iron: input NAME BYTES'", o->module.path);
    for (const char *at = o->lines;
         (at = iron__outside_directive(at, "parameter", line, sizeof line));)
        IRON_TRY(read_parameter(o, line, err));
    IRON_TRY(take_line(o, "shape", "line", line, sizeof line, err));
    o->base.is_line = strcmp(line, "matrix") != 0;
    IRON_TRY(take_line(o, "bound", "read", line, sizeof line, err));
    o->base.bound = strcmp(line, "copy") == 0 ? IRON_BOUND_COPY : IRON_BOUND_READ;
    IRON_TRY(take_line(o, "vocab", "0", line, sizeof line, err));
    o->base.vocab_usual = (uint32_t)strtoul(line, NULL, 10);
    o->base.name = o->name;
    o->base.contract = o->contract;
    o->base.why = o->why;
    o->base.is_resident = true;
    o->base.axes = o->axes;
    o->base.baselines[0] = o->base.baselines[1] = o->baseline;
    o->base.useful_bytes = useful_bytes;
    o->base.host_bytes = host_bytes;
    o->base.operations = operations;
    o->base.accept = accept;
    o->base.make = iron__outside_op_make;
    o->base.unmake = iron__outside_op_unmake;
    o->base.check = iron__outside_op_check;
    return IRON_OK;
}
