// What the C API's log makes of a printf format: glibc's own bytes for the conversions it vouches for, a marker for the rest.
//
//   %d %i       lengths hh h l ll z     flags - + space 0     width, precision
//   %u          lengths hh h l ll z     flags - + space 0     width, precision
//   %x %X       lengths hh h l ll z     flags - + space # 0   width, precision
//   %f %F       length l                flags - + space # 0   width, precision
//   %s                                  flag -                width, precision
//   %c %p                               flag -                width
//   %%
//
// A width or precision is a number or *; neither may be over 65,536. What C leaves undefined (%#d, %05c, %.3p) is not vouched
// for. A conversion or length that is not in the table has an argument of unknown type, so that no later one can be found.
//
//   %<unsupported:SPEC>   not in the table: nothing is read from here on; or in the table with a flag, width or precision that
//                         is not vouched for: its arguments are read and dropped
//   %<skipped:SPEC>       every conversion after one that is not in the table; %% is still %
//   %<incomplete:SPEC>    the format ended within a conversion; nothing is read for it
//
// SPEC is what stands after the %, to the first character that is no flag, width, precision or length, that one included.
#pragma once
#include <cstdarg>
#include <string>

namespace bankml::capi {

// `format` with `arguments` in place of its conversions: bytes, NULs among them where %c put one. Each argument is read at the
// C type its conversion names, and of a string under a precision no more bytes than the precision allows. As with vsnprintf,
// the calling thread's locale gives the decimal point, its rounding mode the digits, and `arguments` is used up.
// Throws std::bad_alloc.
std::string format_message(const char *format, std::va_list arguments);

}  // namespace bankml::capi
