/* SPDX-License-Identifier: MIT */
/*
 * fuzz_numbers.c: the command's numbers. The input, up to a zero byte, is one argument.
 *
 * An integer is accepted iff it consists of digits and, without leading zeros, is at most
 * 18446744073709551615 as text; printed it gives that text. A real is accepted iff a small scanner
 * written here from the grammar accepts it and it is within a double's range; printed with 17
 * digits and read again it is the same double, and it matches the long double up to rounding.
 */
#include "fuzz.h"
#include "options.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

static void check_number(const char *text) {
    static const char largest[] = "18446744073709551615";
    const char *rest = text + strspn(text, "0");
    size_t length = strlen(rest);
    bool is_number = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' &&
                     (length < 20 || (length == 20 && strcmp(rest, largest) <= 0));
    char printed[24];
    iron_error err;
    uint64_t value = 1;

    if (fuzz_refused(parse_number("--number", text, &value, &err), &err)) {
        FUZZ_REQUIRE(!is_number);
        return;
    }
    FUZZ_REQUIRE(is_number);
    snprintf(printed, sizeof printed, "%" PRIu64, value);
    FUZZ_REQUIRE(strcmp(printed, length ? rest : "0") == 0);
}

static const char *skip_digits(const char *at, size_t *count) {
    size_t digits = strspn(at, "0123456789");

    *count += digits;
    return at + digits;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit before the exponent somewhere. */
static bool is_decimal(const char *at) {
    size_t mantissa = 0, exponent = 0;

    at += *at == '+' || *at == '-';
    at = skip_digits(at, &mantissa);
    if (*at == '.')
        at = skip_digits(at + 1, &mantissa);
    if (mantissa == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        at = skip_digits(at, &exponent);
        if (exponent == 0)
            return false;
    }
    return *at == '\0';
}

/* Even a long double may round to 0; the digits before the exponent tell what is meant. */
static bool has_digit_but_0(const char *text) {
    return strcspn(text, "123456789") < strcspn(text, "eE");
}

static void check_real(const char *text) {
    long double wide = is_decimal(text) ? strtold(text, NULL) : 0;
    char printed[40];
    iron_error err;
    double value = 1, again = 2;

    if (fuzz_refused(parse_real("value", text, &value, &err), &err)) {
        FUZZ_REQUIRE(!is_decimal(text) || fabsl(wide) > (long double)DBL_MAX);
        return;
    }
    FUZZ_REQUIRE(is_decimal(text) && isfinite(value));
    if (fabsl(wide) < (long double)DBL_MIN && has_digit_but_0(text))
        /* too small for doubles: the smallest normal one stands for those that would be 0 */
        FUZZ_REQUIRE(value != 0 && fabs(value) <= DBL_MIN && (value < 0) == (text[0] == '-'));
    else
        FUZZ_REQUIRE(fabsl((long double)value - wide) <= fabsl(wide) * 0x1p-52L + 0x1p-1074L);
    snprintf(printed, sizeof printed, "%.17g", value);
    FUZZ_REQUIRE(parse_real("value", printed, &again, &err) == IRON_OK);
    FUZZ_REQUIRE(memcmp(&value, &again, sizeof value) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    char *text = fuzz_text(&in);

    check_number(text);
    check_real(text);
    free(text);
    return 0;
}
