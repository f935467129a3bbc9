/* What bankml_log delivers against what this system's snprintf writes, byte for byte; then every marker.
 * Prints the number of comparisons; exits 1 after naming each difference. */
#define _GNU_SOURCE
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <printf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "bankml.h"

/* The sanitizer's own check of snprintf's arguments looks for the NUL of a string whose precision says there need be none. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "check_printf=0"; }

static char *delivered;
static size_t delivered_size;
static int compared, differences;

static void keep(int level, const char *msg, size_t len, void *user) {
    if (level != BANKML_LOG_DEBUG || user != &compared || msg[len] != '\0') abort();
    delivered = malloc(len + 1);
    memcpy(delivered, msg, len + 1);
    delivered_size = len;
}

static void compare(const char *format, const char *expected, size_t size) {
    ++compared;
    if (delivered == NULL || delivered_size != size || memcmp(delivered, expected, size) != 0) {
        ++differences;
        printf("%s\n  expected %zu bytes: %.200s\n  given    %zu bytes: %.200s\n", format, size, expected, delivered_size,
               delivered ? delivered : "none");
    }
    free(delivered);
    delivered = NULL;
}

/* snprintf into a buffer of exactly its size, so that the sanitizer sees a byte too many of ours or of its. */
#define SAME(...)                                          \
    do {                                                   \
        const int size_ = snprintf(NULL, 0, __VA_ARGS__);  \
        char *const text_ = malloc((size_t)size_ + 1);     \
        snprintf(text_, (size_t)size_ + 1, __VA_ARGS__);   \
        bankml_log(BANKML_LOG_DEBUG, __VA_ARGS__);         \
        compare(FIRST(__VA_ARGS__, 0), text_, (size_t)size_); \
        free(text_);                                       \
    } while (0)
#define FIRST(first, ...) first

#define GIVES(expected, ...)                                               \
    do {                                                                   \
        bankml_log(BANKML_LOG_DEBUG, __VA_ARGS__);                         \
        compare(FIRST(__VA_ARGS__, 0), expected, sizeof(expected) - 1);    \
    } while (0)

static const char *const widths[] = {"", "1", "7", "28", "200"};
static const char *const precisions[] = {"", ".", ".0", ".1", ".5", ".30", ".150"};

/* Each subset of `flags`, each width and precision, each length and type: one format each, passed to `use`. */
static void each_format(const char *flags, int with_precision, const char *length, char type,
                        void (*use)(const char *format, const char *length)) {
    const size_t n = strlen(flags);
    for (unsigned set = 0; set < 1u << n; ++set) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; ++w) {
            for (size_t p = 0; p < (with_precision ? sizeof precisions / sizeof *precisions : 1); ++p) {
                char format[64], *at = format + sprintf(format, "<%%");
                for (size_t i = 0; i < n; ++i) {
                    if (set >> i & 1) *at++ = flags[i];
                }
                sprintf(at, "%s%s%s%c>", widths[w], precisions[p], length, type);
                use(format, length);
            }
        }
    }
}

static const long long integers[] = {0, 1, -1, 9, -10, 42, CHAR_MIN, CHAR_MAX, UCHAR_MAX, SHRT_MIN, SHRT_MAX, USHRT_MAX,
                                     INT_MIN, INT_MAX, UINT_MAX, 0x123456789abcdef0, LLONG_MIN, LLONG_MAX};

static void use_integers(const char *format, const char *length) {
    for (size_t i = 0; i < sizeof integers / sizeof *integers; ++i) {
        const long long value = integers[i];
        if (strcmp(length, "l") == 0) SAME(format, (long)value);
        else if (strcmp(length, "ll") == 0) SAME(format, value);
        else if (strcmp(length, "z") == 0) SAME(format, (ssize_t)value);
        else SAME(format, (int)value);
    }
}

static void use_doubles(const char *format, const char *length) {
    (void)length;
    const double values[] = {0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 0.125, 0.375, 1.0 / 3, 0.1, 9.995, 99.5, 999999.5, 1e15 + 0.5,
                             1e22, 1e23, -1e300, DBL_MAX, DBL_MIN, 4.9406564584124654e-324, DBL_EPSILON,
                             INFINITY, -INFINITY, NAN, -NAN};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) SAME(format, values[i]);
}

static void use_strings(const char *format, const char *length) {
    (void)length;
    const char *const values[] = {"", "a", "hello", "gr\xc3\xbc\xc3\x9f", "%d %n %s", "a string that is longer than a width of 28", NULL};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) SAME(format, values[i]);
}

static void use_characters(const char *format, const char *length) {
    (void)length;
    const int values[] = {0, 'a', '%', '\n', 127, 128, 255, -1, 256 + 'b'};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) SAME(format, values[i]);
}

static void use_pointers(const char *format, const char *length) {
    (void)length;
    void *const values[] = {NULL, (void *)1, &compared, (void *)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) SAME(format, values[i]);
}

static void every_conversion(void) {
    const char *const lengths[] = {"", "hh", "h", "l", "ll", "z"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        for (const char *type = "diu"; *type != '\0'; ++type) each_format("-+ 0", 1, lengths[i], *type, use_integers);
        for (const char *type = "xX"; *type != '\0'; ++type) each_format("-+ #0", 1, lengths[i], *type, use_integers);
    }
    for (const char *type = "fF"; *type != '\0'; ++type) {
        each_format("-+ #0", 1, "", *type, use_doubles);
        each_format("-+ #0", 1, "l", *type, use_doubles);
    }
    each_format("-", 1, "", 's', use_strings);
    each_format("-", 0, "", 'c', use_characters);
    each_format("-", 0, "", 'p', use_pointers);
}

static void edges(void) {
    SAME("");
    SAME("no conversion");
    SAME("%%");
    SAME("100%% of %d%%%%", 7);
    SAME("%.1100f", 4.9406564584124654e-324);
    SAME("%.1100f|%.0f", DBL_MIN, DBL_MAX);
    SAME("%065536d|%-65536d|%.65536d", 1, 2, 3);
    SAME("%65536f|%.65536f|%65536s|%65536c|%65536p", 1.5, 0.1, "s", 'c', (void *)1);
    SAME("%*d|%-*d|%*d|%0*d", 6, 1, 6, 2, -6, 3, -6, 4);
    SAME("%.*d|%.*d|%.*d|%*.*f", 5, 1, -1, 2, INT_MIN, 0, 12, 3, 2.0005);
    SAME("%.*s|%.*s|%*.*s|%*s", 2, "abcdef", -1, "abcdef", -9, 3, "abcdef", -8, "gh");
    SAME("%*c|%*c|%.*c|%*p|%.*p", 4, 'a', -4, 'b', -1, 'c', 20, (void *)255, -7, (void *)0);
    SAME("%---++  00005d|%+ d|%- 05d", 1, 2, 3);
    SAME("%.3s|%.5s|%.6s|%.7s|%9.5s|%-9.6s|%s", (char *)0, (char *)0, (char *)0, (char *)0, (char *)0, (char *)0, (char *)0);
    SAME("%.00000000000000000000007d|%0000000000000000000009d", 1, 2);
    /* Every register and the stack, integers and doubles among each other. */
    SAME("%d %f %ld %f %lld %f %zd %f %hhd %f %hd %f %u %f %lx %f %s %f %p %f %c %f %x", 1, 1.0, 2L, 2.0, 3LL, 3.0,
         (ssize_t)4, 4.0, 5, 5.0, 6, 6.0, 7u, 7.0, 8UL, 8.0, "nine", 9.0, (void *)10, 10.0, 'k', 11.0, 12u);
    SAME("%zu %zx %lu %llu %zd", SIZE_MAX, SIZE_MAX, ULONG_MAX, ULLONG_MAX, (ssize_t)-1);
    SAME("a%cb%cc%5c%-5cd", 0, 0, 0, 0);
    SAME("gr\xc3\xbc\xc3\x9f \xff %s", "\xfe\x80");
}

/* A string that ends, without a NUL, where memory ends. */
static void unterminated(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *const pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) abort();
    memset(pages, 'x', page);
    const char *const end = pages + page;
    SAME("%.5s", end - 5);
    SAME("%.1s", end - 1);
    SAME("%.0s", end);
    SAME("%.*s", 300, end - 300);
    SAME("%*.*s|", 8, 3, end - 3);
    SAME("%-8.3s|", end - 3);
    SAME("%.*s", (int)page, pages);
    GIVES("%<unsupported:.70000s>!", "%.70000s!", end); /* dropped unread */
    GIVES("%<unsupported:+s>!", "%+s!", end);
    munmap(pages, 2 * page);
}

static void markers(void) {
    int target = 123456;
    /* The type of what is passed is unknown: nothing is read any more. */
    GIVES("%<unsupported:n> %<skipped:d> %", "%n %d %%", &target, 1);
    GIVES("%<unsupported:hhn>", "%hhn", &target);
    GIVES("%<unsupported:lln>", "%lln", &target);
    GIVES("a %<unsupported:5n> %<skipped:s>", "a %5n %s", &target, (char *)1);
    if (target != 123456) {
        ++differences;
        printf("%%n wrote %d\n", target);
    }
    GIVES("%<unsupported:e>", "%e", 1.0);
    GIVES("%<unsupported:E>", "%E", 1.0);
    GIVES("%<unsupported:g>", "%g", 1.0);
    GIVES("%<unsupported:G>", "%G", 1.0);
    GIVES("%<unsupported:a>", "%a", 1.0);
    GIVES("%<unsupported:A>", "%A", 1.0);
    GIVES("%<unsupported:o>", "%o", 1);
    GIVES("%<unsupported:Lf>", "%Lf", 1.0L);
    GIVES("%<unsupported:ls>", "%ls", L"wide");
    GIVES("%<unsupported:lc>", "%lc", L'w');
    GIVES("%<unsupported:S>", "%S", L"wide");
    GIVES("%<unsupported:C>", "%C", L'w');
    GIVES("%<unsupported:jd>", "%jd", (intmax_t)1);
    GIVES("%<unsupported:tu>", "%tu", (ptrdiff_t)1);
    GIVES("%<unsupported:qd>", "%qd", 1LL);
    GIVES("%<unsupported:hf>", "%hf", 1.0);
    GIVES("%<unsupported:llf>", "%llf", 1.0);
    GIVES("%<unsupported:zs>", "%zs", "s");
    GIVES("%<unsupported:hhp>", "%hhp", (void *)1);
    GIVES("%<unsupported:lll>d", "%llld", 1);
    GIVES("%<unsupported:m>", "%m");
    GIVES("%<unsupported:1$>d", "%1$d", 1);
    GIVES("%<unsupported:'>d", "%'d", 1);
    GIVES("%<unsupported:I>d", "%Id", 1);
    GIVES("%<unsupported:y> %<skipped:-5d>, %<skipped:*.*f>, % %%<skipped:s>", "%y %-5d, %*.*f, %% %%%s", 1);
    GIVES("%<unsupported:-08.3e> and %<skipped:+s> %<skipped:n>%", "%-08.3e and %+s %n%%", 1.0, "s", &target);
    GIVES("%<unsupported:\xc3\xbc>", "%\xc3\xbc");
    GIVES("%<unsupported:\xff>x", "%\xffx");
    GIVES("%<unsupported: .\n>", "% .\n");

    /* The type is known: the argument is read and dropped, and the rest goes on. */
    GIVES("%<unsupported:+s> 7", "%+s %d", "s", 7);
    GIVES("%<unsupported:05c> 7", "%05c %d", 'c', 7);
    GIVES("%<unsupported:.3c> 7", "%.3c %d", 'c', 7);
    GIVES("%<unsupported:#c> 7", "%#c %d", 'c', 7);
    GIVES("%<unsupported: c> 7", "% c %d", 'c', 7);
    GIVES("%<unsupported:#p> 7", "%#p %d", (void *)1, 7);
    GIVES("%<unsupported:+p> 7", "%+p %d", (void *)1, 7);
    GIVES("%<unsupported:020p> 7", "%020p %d", (void *)1, 7);
    GIVES("%<unsupported:.2p> 7", "%.2p %d", (void *)1, 7);
    GIVES("%<unsupported:#d> 7", "%#d %d", 1, 7);
    GIVES("%<unsupported:#lli> 7", "%#lli %d", 1LL, 7);
    GIVES("%<unsupported:#u> 7", "%#u %d", 1u, 7);
    GIVES("%<unsupported:05s> %<unsupported: s> %<unsupported:#s> 7", "%05s % s %#s %d", "s", (char *)0, (char *)1, 7);
    GIVES("%<unsupported:5%> %<unsupported:*%> 7", "%5% %*% %d", 3, 7);
    GIVES("%<unsupported:65537d> 7 2.5", "%65537d %d %.1f", 1, 7, 2.5);
    GIVES("%<unsupported:.65537f> 7 2.5", "%.65537f %d %.1f", 1.5, 7, 2.5);
    GIVES("%<unsupported:99999999999999999999d> 7", "%99999999999999999999d %d", 1, 7);
    GIVES("%<unsupported:.99999999999999999999s> 7", "%.99999999999999999999s %d", (char *)1, 7);
    GIVES("%<unsupported:*d> 7", "%*d %d", 65537, 1, 7);
    GIVES("%<unsupported:*d> 7", "%*d %d", -65537, 1, 7);
    GIVES("%<unsupported:*d> 7", "%*d %d", INT_MIN, 1, 7);
    GIVES("%<unsupported:*lld> 7", "%*lld %d", INT_MAX, 1LL, 7);
    GIVES("%<unsupported:*.*f> 7 2.5", "%*.*f %d %.1f", 2, 65537, 1.5, 7, 2.5);
    GIVES("%<unsupported:*.*s> 7", "%*.*s %d", 65537, 2, (char *)1, 7);
    GIVES("%<unsupported:.*c> 7", "%.*c %d", 0, 'c', 7);

    GIVES("%<incomplete:>", "%");
    GIVES("a% %<incomplete:>", "a%% %");
    GIVES("7 %<incomplete:-5.2l>", "%d %-5.2l", 7);
    GIVES("7 %<incomplete:*.*>", "%d %*.*", 7, 1, 1);
    GIVES("%<unsupported:n>%<incomplete:>", "%n%", &target);
}

int main(int argc, char **argv) {
    bankml_set_log(keep, &compared);
    if (argc > 1 && strcmp(argv[1], "hooked") != 0) { /* a locale with another decimal point */
        if (setlocale(LC_ALL, argv[1]) == NULL || localeconv()->decimal_point[0] == '.') return 2;
        use_doubles("%f %%", "");
        use_doubles("%#.0f|", "");
        GIVES("1,500000", "%f", 1.5);
    } else {
        /* As libquadmath does, which numpy brings along: glibc then formats by other code, whose own output for a negative
         * width and the flag 0 would be "2000". */
        if (argc > 1 && register_printf_modifier(L"Q") < 0) return 2;
        every_conversion();
        edges();
        unterminated();
        markers();
        GIVES("1.5   |2   |7   |", "%0*.1f|%0*.0f|%0*d|", -6, 1.5, -4, 2.0, -4, 7);
    }
    bankml_log(BANKML_LOG_DEBUG, NULL);
    if (delivered != NULL) {
        ++differences;
        printf("no format, but a message\n");
    }
    printf("%d compared, %d different\n", compared, differences);
    return differences != 0;
}
