// Standard error, a sink, no memory: each line of standard output is what the sink was given, `level length text`.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "bankml.h"
#include "capi/log.h"

static bool no_memory = false;

void *operator new(std::size_t size) {
    void *const memory = no_memory ? nullptr : std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

static void print(int level, const char *msg, std::size_t len, void *user) {
    if (msg[len] != '\0') std::abort();
    std::printf("%s%d %zu ", static_cast<const char *>(user), level, len);
    std::fwrite(msg, 1, len, stdout);
    std::putchar('\n');
    errno = ERANGE;
}

static void set_another(int, const char *, std::size_t, void *) {
    bankml_set_log(print, const_cast<char *>("set within "));
    bankml_log(BANKML_LOG_WARN, "logged %s", "within");
}

int main() {
    bankml_log(BANKML_LOG_ERROR, "an %s of %d", "error", 1);
    bankml_log(BANKML_LOG_WARN, "ends its line\n");
    bankml_log(BANKML_LOG_INFO, "a NUL: %c.", 0);
    bankml_log(BANKML_LOG_DEBUG, "");
    bankml_log(-1, "of no level");
    bankml::capi::log_message(BANKML_LOG_INFO, "100%d of its own");

    bankml_set_log(print, const_cast<char *>("sink "));
    errno = EAGAIN;
    bankml_log(7, "%s %c.", "text", 0);
    bankml::capi::log_message(BANKML_LOG_INFO, std::string_view("a part, 100%d", 6));
    bankml::capi::log_message(BANKML_LOG_INFO, "");
    bankml::capi::log_message(BANKML_LOG_DEBUG, "100%d of its own %<x>");
    no_memory = true;
    bankml_log(BANKML_LOG_ERROR, "%200d", 1);
    bankml::capi::log_message(BANKML_LOG_ERROR, "a message longer than what a string holds without memory");
    no_memory = false;
    if (errno != EAGAIN) return 1;

    bankml_set_log(set_another, nullptr);
    bankml_log(BANKML_LOG_INFO, "to the one that sets another");
    bankml_log(BANKML_LOG_INFO, "to the other");
    bankml_set_log(nullptr, nullptr);
    bankml_log(BANKML_LOG_WARN, "standard error again");
}
