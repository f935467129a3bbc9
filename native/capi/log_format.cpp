#include "capi/log_format.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <sys/types.h>

namespace bankml::capi {
namespace {

constexpr int kWidest = 65536;  // of a width or precision

constexpr std::string_view kFlags = "-+ #0";
enum Flag : unsigned { LEFT = 1, PLUS = 2, SPACE = 4, ALTERNATE = 8, ZERO = 16 };  // 1 << the place in kFlags

enum class Length : unsigned { none, hh, h, l, ll, z, other };
constexpr std::string_view kLengths[] = {"", "hh", "h", "l", "ll", "z"};

constexpr unsigned bit(Length length) { return 1u << static_cast<unsigned>(length); }
constexpr unsigned kPlain = bit(Length::none);
constexpr unsigned kIntegers = kPlain | bit(Length::hh) | bit(Length::h) | bit(Length::l) | bit(Length::ll) | bit(Length::z);

// What is vouched for, of the conversions whose arguments have a known type.
struct Rule {
    std::string_view types;
    unsigned lengths;
    unsigned flags;
    bool width;
    bool precision;
};
constexpr Rule kRules[] = {
    {"diu", kIntegers, LEFT | PLUS | SPACE | ZERO, true, true},
    {"xX", kIntegers, LEFT | PLUS | SPACE | ALTERNATE | ZERO, true, true},
    {"fF", kPlain | bit(Length::l), LEFT | PLUS | SPACE | ALTERNATE | ZERO, true, true},
    {"s", kPlain, LEFT, true, true},
    {"cp", kPlain, LEFT, true, false},
    {"%", kPlain, 0, false, false},
};

// A width or precision as the format gives it.
struct Amount {
    enum class From { absent, format, argument } from = From::absent;
    int value = 0;  // From::format; at most kWidest + 1
};

struct Conversion {
    std::string_view spec;  // all of it after the %
    unsigned flags = 0;
    Amount width;
    Amount precision;
    Length length = Length::none;
    char type = '\0';  // NUL: the format ended first
};

// What a conversion is written with, once its * are read.
struct Field {
    std::string_view spec;
    unsigned flags;
    int width;
    int precision;  // -1: none
    Length length;
    char type;
    bool vouched;
};

class Arguments {
  public:
    explicit Arguments(std::va_list list) { va_copy(list_, list); }
    ~Arguments() { va_end(list_); }
    Arguments(const Arguments &) = delete;
    Arguments &operator=(const Arguments &) = delete;

    template <class T>
    T next() {
        return va_arg(list_, T);
    }

    int amount(Amount asked, int absent) {
        if (asked.from == Amount::From::absent) return absent;
        return asked.from == Amount::From::argument ? next<int>() : asked.value;
    }

  private:
    std::va_list list_;
};

Amount parse_amount(const char *&at, Amount::From when_empty) {
    if (*at == '*') return ++at, Amount{Amount::From::argument};
    Amount amount{when_empty};
    for (; *at >= '0' && *at <= '9'; ++at) {
        amount.from = Amount::From::format;
        amount.value = std::min(amount.value * 10 + (*at - '0'), kWidest + 1);
    }
    return amount;
}

Length parse_length(const char *&at) {
    const char *const begin = at;
    if (*at == 'h' || *at == 'l') at += at[1] == at[0] ? 2 : 1;
    else if (*at != '\0' && std::strchr("zjtLq", *at) != nullptr) ++at;
    const std::string_view *const found =
        std::find(std::begin(kLengths), std::end(kLengths), std::string_view(begin, at - begin));
    return static_cast<Length>(found - std::begin(kLengths));
}

// The conversion that begins at `at`, behind its %.
Conversion parse(const char *at) {
    const char *const begin = at;
    Conversion conversion;
    for (std::size_t flag; *at != '\0' && (flag = kFlags.find(*at)) != kFlags.npos; ++at) conversion.flags |= 1u << flag;
    conversion.width = parse_amount(at, Amount::From::absent);
    if (*at == '.') conversion.precision = parse_amount(++at, Amount::From::format);
    conversion.length = parse_length(at);
    conversion.type = *at;
    if (*at != '\0') {
        // A character of several UTF-8 bytes is no conversion, but it stays in one piece.
        const bool wide = static_cast<unsigned char>(*at++) >= 0xC0;
        while (wide && (static_cast<unsigned char>(*at) & 0xC0) == 0x80) ++at;
    }
    conversion.spec = {begin, static_cast<std::size_t>(at - begin)};
    return conversion;
}

const Rule *find_rule(const Conversion &conversion) {
    for (const Rule &rule : kRules) {
        if (rule.types.find(conversion.type) == rule.types.npos) continue;
        return (rule.lengths & bit(conversion.length)) != 0 ? &rule : nullptr;
    }
    return nullptr;
}

Field read_field(const Conversion &conversion, const Rule &rule, Arguments &arguments) {
    Field field{conversion.spec, conversion.flags, 0, -1, conversion.length, conversion.type, true};
    field.width = arguments.amount(conversion.width, 0);
    field.precision = std::max(arguments.amount(conversion.precision, -1), -1);
    if (field.width < 0) {
        field.flags |= LEFT;
        field.width = field.width == INT_MIN ? INT_MAX : -field.width;
    }
    field.vouched = (field.flags & ~rule.flags) == 0 && (rule.width || conversion.width.from == Amount::From::absent) &&
                    (rule.precision || field.precision < 0) && field.width <= kWidest && field.precision <= kWidest;
    return field;
}

void write_marker(std::string &out, std::string_view what, std::string_view spec) {
    out.append("%<").append(what).append(":").append(spec).append(">");
}

void write_padded(std::string &out, const Field &field, std::string_view bytes) {
    if (!field.vouched) return write_marker(out, "unsupported", field.spec);
    const std::size_t padding = std::max(static_cast<std::size_t>(field.width), bytes.size()) - bytes.size();
    const bool left = (field.flags & LEFT) != 0;
    out.append(left ? 0 : padding, ' ').append(bytes).append(left ? padding : 0, ' ');
}

// A number as snprintf writes it, under a specification of our own: each flag once, and no negative width. Where a library
// has registered printf hooks (libquadmath, which numpy brings along), glibc pads %0*f on the right with zeros for those.
template <class T>
void write_number(std::string &out, const Field &field, T value) {
    if (!field.vouched) return write_marker(out, "unsupported", field.spec);
    std::string spec = "%";
    for (std::size_t flag = 0; flag < kFlags.size(); ++flag) {
        if ((field.flags & (1u << flag)) != 0) spec += kFlags[flag];
    }
    spec.append("*.*").append(kLengths[static_cast<unsigned>(field.length)]) += field.type;

    char buffer[128];
    const int size = std::snprintf(buffer, sizeof buffer, spec.c_str(), field.width, field.precision, value);
    if (size < 0) throw std::bad_alloc();  // glibc had no memory for the digits
    if (static_cast<std::size_t>(size) < sizeof buffer) {
        out.append(buffer, size);
        return;
    }
    const std::size_t before = out.size();
    out.resize(before + size + 1);
    if (std::snprintf(&out[before], size + 1, spec.c_str(), field.width, field.precision, value) < 0) throw std::bad_alloc();
    out.resize(before + size);
}

void write_string(std::string &out, const Field &field, const char *text) {
    // glibc's way with NULL: the whole of (null), or nothing where the precision would cut it.
    if (text == nullptr) return write_padded(out, field, field.precision < 0 || field.precision >= 6 ? "(null)" : "");
    if (!field.vouched) return write_padded(out, field, {});
    const std::size_t size = field.precision < 0 ? std::strlen(text) : strnlen(text, field.precision);
    write_padded(out, field, {text, size});
}

void write_pointer(std::string &out, const Field &field, const void *pointer) {
    char digits[2 + 2 * sizeof pointer + 1];
    const int size = std::snprintf(digits, sizeof digits, "%p", pointer);
    write_padded(out, field, {digits, static_cast<std::size_t>(size)});
}

void write_signed(std::string &out, const Field &field, Arguments &arguments) {
    switch (field.length) {
        case Length::l: return write_number(out, field, arguments.next<long>());
        case Length::ll: return write_number(out, field, arguments.next<long long>());
        case Length::z: return write_number(out, field, arguments.next<ssize_t>());
        default: return write_number(out, field, arguments.next<int>());  // what char and short are passed as
    }
}

void write_unsigned(std::string &out, const Field &field, Arguments &arguments) {
    switch (field.length) {
        case Length::l: return write_number(out, field, arguments.next<unsigned long>());
        case Length::ll: return write_number(out, field, arguments.next<unsigned long long>());
        case Length::z: return write_number(out, field, arguments.next<std::size_t>());
        default: return write_number(out, field, arguments.next<unsigned>());
    }
}

// Reads the argument of a conversion that is in the table, and writes it or a marker.
void write_conversion(std::string &out, const Field &field, Arguments &arguments) {
    switch (field.type) {
        case 'd':
        case 'i': return write_signed(out, field, arguments);
        case 'f':
        case 'F': return write_number(out, field, arguments.next<double>());
        case 's': return write_string(out, field, arguments.next<const char *>());
        case 'p': return write_pointer(out, field, arguments.next<const void *>());
        case 'c': {
            const char byte = static_cast<char>(arguments.next<int>());
            return write_padded(out, field, {&byte, 1});
        }
        case '%': return write_padded(out, field, "%");
        default: return write_unsigned(out, field, arguments);
    }
}

}  // namespace

std::string format_message(const char *format, std::va_list list) {
    Arguments arguments(list);
    std::string out;
    bool lost = false;  // an argument of unknown type has passed
    for (;;) {
        const std::size_t plain = std::strcspn(format, "%");
        out.append(format, plain);
        if (format[plain] == '\0') return out;
        const Conversion conversion = parse(format + plain + 1);
        format = conversion.spec.data() + conversion.spec.size();
        if (conversion.spec == "%") {
            out += '%';
        } else if (conversion.type == '\0') {
            write_marker(out, "incomplete", conversion.spec);
        } else if (lost) {
            write_marker(out, "skipped", conversion.spec);
        } else if (const Rule *const rule = find_rule(conversion)) {
            write_conversion(out, read_field(conversion, *rule, arguments), arguments);
        } else {
            write_marker(out, "unsupported", conversion.spec);
            lost = true;
        }
    }
}

}  // namespace bankml::capi
