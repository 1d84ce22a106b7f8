/* Preloaded into a server: its wall clock differs by the milliseconds in the file CLOCK_SHIFT_FILE, read at each call.
   The file is an int64 in the machine's order. Monotonic clocks, and so time-outs, stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t none = 0;
static volatile int64_t *shift_ms = &none;
static int (*machine_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
  machine_clock = dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("CLOCK_SHIFT_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) shift_ms = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = machine_clock ? machine_clock(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t shift = *shift_ms, nanoseconds = now->tv_nsec + shift % 1000 * 1000000;
  now->tv_sec += shift / 1000 + (nanoseconds < 0 ? -1 : nanoseconds / 1000000000);
  now->tv_nsec = (nanoseconds + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
  *now = (struct timeval){.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}
