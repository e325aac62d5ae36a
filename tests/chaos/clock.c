/* A wall clock that is wrong by CHAOS_CLOCK_SECONDS, for one process (LD_PRELOAD). gettimeofday is left alone: SQLite
   asks it, and on SQLite the machine's clock is the database's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long offset(void) {
    const char *text = getenv("CHAOS_CLOCK_SECONDS");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, at);
    if (code == 0 && clock == CLOCK_REALTIME) at->tv_sec += offset();
    return code;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
