/* SPDX-License-Identifier: MIT */
/*
 * fuzz_numbers.c: the command's numbers. The input, up to a zero byte, is one argument.
 *
 * An integer is what long multiplication of decimal digits gives, written here from the grammar:
 * digits, decimals, exponent and unit; a value of plain digits is accepted iff it is at most
 * 18446744073709551615. A real is accepted iff a small scanner written here from the grammar
 * accepts it and it is within a double's range; printed with 17 digits and read again it is the
 * same double, and it matches the long double up to rounding.
 */
#include "fuzz.h"
#include "options.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* The decimal digits of a number, lowest first. */
#define DIGITS_MAX 400u

/* Multiplies by a small factor; the number must fit. */
static void multiply(unsigned char digits[DIGITS_MAX], uint64_t factor) {
    uint64_t carry = 0;

    for (size_t k = 0; k < DIGITS_MAX; k++) {
        carry += digits[k] * factor;
        digits[k] = (unsigned char)(carry % 10);
        carry /= 10;
    }
}

/* The number as digits, or NULL if it is not of the form digits[.digits][e[+]digits][unit], or is
 * not whole, or has more than 20 digits. */
static const char *expected_number(const char *text, char printed[DIGITS_MAX]) {
    static const char *const units[] = {"", "k", "M", "G", "T"};
    unsigned char digits[DIGITS_MAX] = {0};
    size_t whole = strspn(text, "0123456789"), decimals = 0, exponent = 0, used, k;
    const char *at = text + whole;
    size_t unit = 0;
    bool is_binary;

    if (whole == 0)
        return NULL;
    if (*at == '.') {
        decimals = strspn(at + 1, "0123456789");
        if (decimals == 0)
            return NULL;
        at += 1 + decimals;
    }
    for (k = 0; k < whole + decimals; k++)
        digits[whole + decimals - 1 - k] = (unsigned char)(text[k + (k >= whole)] - '0');
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' ? 2 : 1;
        if (strspn(at, "0123456789") == 0)
            return NULL;
        for (; *at >= '0' && *at <= '9'; at++)
            exponent = exponent < DIGITS_MAX ? exponent * 10 + (size_t)(*at - '0') : DIGITS_MAX;
    }
    if (*at)
        for (unit = 1; unit < 5 && *at != *units[unit] && !(*at == 'K' && unit == 1);)
            unit++;
    if (unit == 5)
        return NULL;
    at += unit > 0;
    is_binary = unit > 0 && *at == 'i';
    at += is_binary;
    at += unit > 0 && *at == 'B';
    if (*at)
        return NULL;
    for (k = 0; k < unit; k++)
        multiply(digits, is_binary ? 1024 : 1000);
    for (used = DIGITS_MAX; used > 0 && digits[used - 1] == 0;)
        used--;
    if (used == 0)
        return strcpy(printed, "0");
    for (k = 0; k + exponent < decimals; k++)
        if (digits[k] != 0)
            return NULL;
    if (used + exponent > decimals + 20)
        return NULL;
    for (k = 0; k < used + exponent - decimals; k++) {
        size_t from = used - 1 - k; /* of the digit at position k of the printed number */

        printed[k] = (char)('0' + (k < used ? digits[from] : 0));
    }
    printed[k] = '\0';
    return printed;
}

static void check_number(const char *text) {
    static const char largest[] = "18446744073709551615";
    char digits[DIGITS_MAX], printed[24];
    const char *expected = strlen(text) < DIGITS_MAX / 2 ? expected_number(text, digits) : NULL;
    bool is_small = expected && (strlen(expected) < 20 || strcmp(expected, largest) <= 0);
    iron_error err;
    uint64_t value = 1;

    if (fuzz_refused(parse_number("--number", text, &value, &err), &err)) {
        /* digits beyond 64 bits are refused even if most are zeros behind the point */
        FUZZ_REQUIRE(!is_small || strpbrk(text, ".eEkKMGT"));
        return;
    }
    if (strlen(text) >= DIGITS_MAX / 2)
        return;
    FUZZ_REQUIRE(is_small);
    snprintf(printed, sizeof printed, "%" PRIu64, value);
    FUZZ_REQUIRE(strcmp(printed, expected) == 0);
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
