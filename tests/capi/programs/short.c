/* short MODEL FORK memory|threads N: opens with N MiB of address space left, or N threads for one who is not
 * root; prints the reason or the code. Nothing of the library may end it: `exit` and SIGINT say so. */
#define _GNU_SOURCE
#include <bankml.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int done = 0;

static void at_exit(void) {
    if (!done) puts("exit");
    fflush(stdout);
}

static void on_signal(int number) { printf("signal %d\n", number); }

static void limit(int what, rlim_t most) {
    struct rlimit both = {most, most};
    if (setrlimit(what, &both) != 0) exit(3);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    atexit(at_exit);
    signal(SIGINT, on_signal);
    signal(SIGABRT, on_signal);
    int n = atoi(argv[4]);
    if (strcmp(argv[3], "memory") == 0) {
        long pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (file == NULL || fscanf(file, "%ld", &pages) != 1) return 2;
        fclose(file);
        limit(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)n << 20));
    } else {
        uid_t nobody = 61000 + (uid_t)getpid() % 4000; /* who has no other processes */
        if (setgroups(0, NULL) != 0 || setgid(65534) != 0) return 3;
        limit(RLIMIT_NPROC, (rlim_t)n);
        if (setuid(nobody) != 0) return 3;
    }
    char *reason = NULL;
    bankml_t *model = bankml_open(argv[1], argv[2], 512, &reason);
    printf("%s\n", model != NULL ? "opened" : reason != NULL ? reason : "no reason");
    bankml_free(reason);
    bankml_close(model);
    done = 1;
    return 0;
}
