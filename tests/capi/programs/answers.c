/* answers MODEL FORK N_CTX STOP_AFTER REQUEST...: asks the requests in the given files, one after the other, on one handle.
 *
 * For each, REQUEST.pieces gets the pieces, each as its length, a newline and its bytes, and REQUEST.result the result;
 * the code is a line of stdout. STOP_AFTER pieces the callback says 0; 0: never. */
#include <bankml.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct answer {
    FILE *pieces;
    int left;
    pthread_t caller;
};

static int write_piece(const char *piece, size_t len, void *user) {
    struct answer *answer = user;
    if (piece[len] != '\0' || len == 0 || !pthread_equal(pthread_self(), answer->caller)) abort();
    fprintf(answer->pieces, "%zu\n", len);
    fwrite(piece, 1, len, answer->pieces);
    return --answer->left != 0;
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) abort();
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    rewind(file);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) abort();
    fclose(file);
    return text;
}

static FILE *beside(const char *path, const char *suffix) {
    char name[4096];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return fopen(name, "wb");
}

int main(int argc, char **argv) {
    char *reason = (char *)"untouched";
    bankml_t *model = bankml_open(argv[1], argv[2], (uint32_t)strtoul(argv[3], NULL, 10), &reason);
    if (model == NULL) {
        printf("%s\n", reason);
        bankml_free(reason);
        return 2;
    }
    if (reason != NULL) abort();
    for (int i = 5; i < argc; ++i) {
        struct answer answer = {beside(argv[i], ".pieces"), atoi(argv[4]), pthread_self()};
        char *request = read_file(argv[i]), *result = NULL;
        printf("%d\n", bankml_chat(model, request, write_piece, &answer, &result));
        fclose(answer.pieces);
        FILE *file = beside(argv[i], ".result");
        fputs(result, file);
        fclose(file);
        bankml_free(result);
        free(request);
    }
    bankml_close(model);
    return 0;
}
