/* bankml.h: the C API of bankML. A model opens only when its file is the one that was recorded, and every answer
 * carries a receipt. Three calls make a program: bankml_open, bankml_chat, bankml_close.
 *
 * Nothing here throws, exits, or leaves the host's signal handlers, locale or floating-point mode changed. The library
 * finds its own Python interpreter and packages from where it lies; no environment need be activated. It stays in the
 * process once it is loaded (dlclose does not unload it).
 *
 * Strings: those passed in are read during the call only; text is UTF-8, paths are the file system's own bytes.
 * Threads: every function may be called from any thread; what that means for a handle stands beside each function.
 * fork(): handles do not cross it. In a child of a process that has opened a model, call none of this before exec().
 */
#ifndef BANKML_H
#define BANKML_H

#include <stddef.h>
#include <stdint.h>

/* Both may be defined beforehand, as nothing, for a reader of C that knows no attributes (cffi, SWIG). */
#ifndef BANKML_API
#  if defined(__GNUC__)
#    define BANKML_API __attribute__((visibility("default")))
#  else
#    define BANKML_API
#  endif
#endif
#ifndef BANKML_PRINTF
#  if defined(__GNUC__)
#    define BANKML_PRINTF(text, first) __attribute__((format(printf, text, first)))
#  else
#    define BANKML_PRINTF(text, first)
#  endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What bankml_chat returns. */
enum {
    BANKML_OK = 0,         /* answered */
    BANKML_E_ARG = -1,     /* a NULL handle or request, a request that is not UTF-8, or one from within its callback */
    BANKML_E_REQUEST = -2, /* the request is refused; the message names the field, the range and what came */
    BANKML_E_CHANGED = -3, /* the file changed since it was verified, or its mode or links did: close, open it again */
    BANKML_E_ENGINE = -4,  /* the engine failed while answering */
    BANKML_E_PANIC = -5    /* a defect of the library was caught; the handle may still be used, and closed */
};

/* The levels of the log. */
enum {
    BANKML_LOG_ERROR = 0,
    BANKML_LOG_WARN = 1,
    BANKML_LOG_INFO = 2,
    BANKML_LOG_DEBUG = 3
};

/* One verified, loaded model with one slot: the next request reuses the longest beginning its prompt has in common
 * with what the slot holds. */
typedef struct bankml_handle bankml_t;

/* A piece of an answer, as it comes: whole UTF-8 characters, `len` bytes with a NUL after them (the text may hold NULs
 * of its own), valid until the callback returns. Under JSON mode or a schema the pieces are the growth of the content;
 * joined, they are the content of *result_json always.
 *
 * Called on the thread that called bankml_chat. It may call bankml_log, bankml_version, bankml_free, and anything with
 * another handle; with the handle that is answering it must call neither bankml_chat (it would wait for itself) nor
 * bankml_close. It must return: no longjmp may leave it, and a C++ exception that leaves it, or the end of its thread in
 * it, ends the process there and then (std::terminate), before it can break what answers.
 *
 * Return 0 to stop, anything else to go on. */
typedef int (*bankml_piece_cb)(const char *piece, size_t len, void *user);

/* A message of the log: `len` bytes with a NUL after them (a %c may have put NULs among them), no newline added, valid
 * until the callback returns.
 *
 * Called on whichever thread the message comes from, on several at once when several are in the library; it must
 * return, and must not call bankml_open, bankml_chat or bankml_close. */
typedef void (*bankml_log_cb)(int level, const char *msg, size_t len, void *user);

/* The version of the library, "0.1.0". A static string: never free it. Any thread, at any time. */
BANKML_API const char *bankml_version(void);

/* Verifies the GGUF file at `model_path` against its record in `fork_json_path`, as `bankml serve` does (guard, sha256,
 * identity), and loads it. `n_ctx` is the context in tokens, 0 means 4096; like llama.cpp's it is rounded up to a
 * multiple of 256.
 *
 * Returns the handle, which the caller ends with bankml_close; or NULL, and then *err is the reason in serve's words
 * ("refuse: …", "need_more: …", "error: …"), which the caller frees with bankml_free. On success *err is NULL. `err` may
 * be NULL: the reason goes to the log all the same.
 *
 * The environment (BANKML_THREADS, BANKML_LLAMA_THREADS, BANKML_CACHE_TYPE, BANKML_CACHE_RAM) is read here. Any thread;
 * several may open at once.
 *
 * The first call that gets as far as loading sets OPENBLAS_NUM_THREADS to 1 for a fraction of a second, and removes it
 * again, unless the host has set it, or has a Python of its own: without it, a library that comes with Python's packages
 * would begin threads that nobody needs, and end the process where there are none to be had. As no C library lets one
 * thread change the environment while another reads it, let no other thread call setenv, putenv or getenv meanwhile; a host
 * that cannot promise that sets the variable itself, before it has threads. */
BANKML_API bankml_t *bankml_open(const char *model_path, const char *fork_json_path, uint32_t n_ctx, char **err);

/* Answers `request_json`, the body that POST /v1/chat/completions takes; its "model" and "stream" are ignored. The text
 * goes to `cb` piece by piece with `user`; `cb` may be NULL.
 *
 * Returns one of the codes above. *result_json is the object that the endpoint answers when it does not stream, with
 * "bankml_receipt", or on any error {"error": {"code", "message"}} with the code returned; the caller frees it with
 * bankml_free. It is NULL only when there was no memory for it. `result_json` may be NULL. A prompt that does not fit the
 * context is BANKML_E_REQUEST with "n_prompt_tokens" and "n_ctx" beside the message.
 *
 * An answer that the callback stopped is BANKML_OK: its content is the pieces given, the last included, its
 * finish_reason "stop" (unless it had just ended by itself), and its counts and receipt are of what was generated.
 *
 * Any thread. Calls on one handle wait for each other, in the order they came; different handles answer at the same
 * time. */
BANKML_API int bankml_chat(bankml_t *h, const char *request_json, bankml_piece_cb cb, void *user, char **result_json);

/* Ends a handle and gives back its memory (the handle's alone, when the host has ended its Python); NULL does nothing. Any thread, but no call on the handle may be running, and
 * none may follow. */
BANKML_API void bankml_close(bankml_t *h);

/* Frees a string that came through `err` or `result_json`, once; NULL does nothing. Any thread. */
BANKML_API void bankml_free(char *s);

/* Sends the log, the library's own messages included (a model verified, a refusal), to `cb` with `user`; NULL sends it
 * to standard error, a line each, as in the beginning. One for the whole process. Any thread. It returns when no other
 * thread is inside the callback that it replaces: what that one's `user` points to may then be freed. So hold no lock
 * here that the callback takes. */
BANKML_API void bankml_set_log(bankml_log_cb cb, void *user);

/* Writes to the log, with printf's conversions: %d %i %u %x %X (hh, h, l, ll, z), %f %F, %c, %s, %p, %%, with flags,
 * width and precision, byte for byte as glibc's snprintf. Any other is written as a marker, %<unsupported:…>, and
 * nothing is ever written through %n. Any thread. */
BANKML_API void bankml_log(int level, const char *fmt, ...) BANKML_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif /* BANKML_H */
