/* The kernel of Stream: sustainable memory bandwidth.
 *
 *   stream ARRAY_BYTES REPETITIONS TASKS
 *
 * After the description of STREAM by J. D. McCalpin: three arrays of doubles, each far larger than the
 * caches,
 *
 *   copy   c = a          scale  b = s c          add  c = a + b          triad  a = b + s c
 *
 * one after another, REPETITIONS times. BYTES counts the arrays that a loop reads and writes: two for copy
 * and scale, three for add and triad. The first repetition, which allocates the memory, is not counted. At
 * the end every element is compared with the result of the same operations on a single number.
 *
 * The arrays are divided among TASKS processes, each with its own memory, which start every loop
 * simultaneously. ARRAY_BYTES 0 is four times the last-level caches of this host, as STREAM requires, but at
 * most an eighth of its memory. Prints "cache BYTES", "array BYTES" and for each loop "NAME BYTES FASTEST
 * MEAN SLOWEST" (seconds).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOPS = 4, MOST_REPETITIONS = 1000, MOST_TASKS = 1024, LEAST_ARRAY_BYTES = 1 << 16 };
static const char *const NAMES[LOOPS] = {"copy", "scale", "add", "triad"};
static const int ARRAYS[LOOPS] = {2, 2, 3, 3};
static const double SCALAR = 3.0;

/* gcc would replace copy by memcpy, which bypasses the caches when it stores: not comparable with the other
 * loops. */
#if defined(__GNUC__) && !defined(__clang__)
#define AS_WRITTEN __attribute__((noinline, optimize("O3", "no-tree-loop-distribute-patterns")))
#else
#define AS_WRITTEN __attribute__((noinline))
#endif

typedef struct {
    pthread_barrier_t barrier;
    double seconds[LOOPS][MOST_REPETITIONS];
} Shared;

static _Noreturn void die(const char *doing) {
    fprintf(stderr, "stream: cannot %s: %s\n", doing, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static unsigned long long number(const char *text) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0') {
        fprintf(stderr, "stream: not a number: %s\n", text);
        exit(2);
    }
    return value;
}

AS_WRITTEN static void copy(double *restrict c, const double *restrict a, size_t size) {
    for (size_t i = 0; i < size; i++)
        c[i] = a[i];
}

AS_WRITTEN static void scale(double *restrict b, const double *restrict c, size_t size) {
    for (size_t i = 0; i < size; i++)
        b[i] = SCALAR * c[i];
}

AS_WRITTEN static void add(double *restrict c, const double *restrict a, const double *restrict b, size_t size) {
    for (size_t i = 0; i < size; i++)
        c[i] = a[i] + b[i];
}

AS_WRITTEN static void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t size) {
    for (size_t i = 0; i < size; i++)
        a[i] = b[i] + SCALAR * c[i];
}

static void run_loop(int loop, double *a, double *b, double *c, size_t size) {
    switch (loop) {
    case 0: copy(c, a, size); break;
    case 1: scale(b, c, size); break;
    case 2: add(c, a, b, size); break;
    default: triad(a, b, c, size);
    }
}

/* Exit with 1 unless every element of an array is `expected`, within rounding errors. */
static void verify(const char *name, const double *array, size_t size, double expected) {
    for (size_t i = 0; i < size; i++) {
        if (!(fabs(array[i] - expected) <= 1e-13 * fabs(expected))) {
            fprintf(stderr, "stream: wrong result: %s[%zu] is %.17g, expected %.17g\n", name, i, array[i], expected);
            exit(1);
        }
    }
}

static void verify_all(const double *a, const double *b, const double *c, size_t size, int repetitions) {
    double one = 1.0, two = 2.0, three = 0.0;
    for (int i = 0; i < repetitions; i++) {
        three = one;
        two = SCALAR * three;
        three = one + two;
        one = two + SCALAR * three;
        if (one > 1e100)
            one = 1.0; /* as keep_finite() does */
    }
    verify("a", a, size, one);
    verify("b", b, size, two);
    verify("c", c, size, three);
}

/* Restart from 1: the numbers grow 15-fold per repetition and would overflow after 260. */
static void keep_finite(double *a, size_t size) {
    if (a[0] > 1e100)
        for (size_t i = 0; i < size; i++)
            a[i] = 1.0;
}

static double *array_of(size_t size, double value) {
    double *array = mmap(NULL, size * sizeof *array, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (array == MAP_FAILED)
        die("allocate memory");
    for (size_t i = 0; i < size; i++)
        array[i] = value;
    return array;
}

static void die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl() */
        _exit(1);
}

static void task(Shared *shared, int is_first, size_t size, int repetitions) {
    double *a = array_of(size, 1.0), *b = array_of(size, 2.0), *c = array_of(size, 0.0);
    for (int i = 0; i < repetitions; i++) {
        for (int loop = 0; loop < LOOPS; loop++) {
            pthread_barrier_wait(&shared->barrier);
            double began = now();
            run_loop(loop, a, b, c, size);
            pthread_barrier_wait(&shared->barrier);
            if (is_first)
                shared->seconds[loop][i] = now() - began;
        }
        keep_finite(a, size);
    }
    verify_all(a, b, c, size, repetitions);
}

static void run_tasks(Shared *shared, int tasks, size_t size, int repetitions) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if ((errno = pthread_barrier_init(&shared->barrier, &attributes, (unsigned)tasks)) != 0)
        die("make a barrier");
    pid_t parent = getpid();
    for (int i = 0; i < tasks; i++) {
        pid_t child = fork();
        if (child < 0)
            die("start a task"); /* the other tasks die with this process */
        if (child == 0) {
            die_with(parent);
            task(shared, i == 0, size, repetitions);
            exit(0);
        }
    }
    for (int i = 0; i < tasks; i++) {
        int status = 0;
        if (wait(&status) < 0 || status != 0) {
            /* A task reports its own errors, unless it was killed. The others would wait for it forever. */
            if (WIFSIGNALED(status))
                fprintf(stderr, "stream: a task was killed by signal %d\n", WTERMSIG(status));
            exit(1);
        }
    }
}

static unsigned long long cache_size(const char *directory, int *level, char *owners, int owner_bytes) {
    char path[300], unit = 0;
    unsigned long long size = 0;
    const char *names[] = {"level", "size", "shared_cpu_list"};
    *level = 0;
    owners[0] = '\0';
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            return 0;
        int got = i == 0 ? fscanf(file, "%d", level)
                : i == 1 ? fscanf(file, "%llu%c", &size, &unit)
                         : fgets(owners, owner_bytes, file) != NULL;
        fclose(file);
        if (got < 1)
            return 0;
    }
    return size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
}

/* Return the sum of all last-level caches, shared ones once; 0 if the system does not report them. */
static unsigned long long last_level_caches(void) {
    enum { OWNER_BYTES = 256, MAX_CACHES = 256 };
    static char seen[MAX_CACHES][OWNER_BYTES];
    unsigned long long total = 0;
    int last_level = 0, count = 0;
    glob_t paths;
    if (glob("/sys/devices/system/cpu/cpu[0-9]*/cache/index[0-9]*", 0, NULL, &paths) != 0)
        return 0;
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        char owners[OWNER_BYTES];
        int level = 0, is_new = 1;
        unsigned long long size = cache_size(paths.gl_pathv[i], &level, owners, OWNER_BYTES);
        if (level > last_level) {
            last_level = level;
            total = 0;
            count = 0;
        }
        for (int k = 0; k < count; k++)
            is_new = is_new && strcmp(seen[k], owners) != 0;
        if (level == last_level && is_new && count < MAX_CACHES) {
            memcpy(seen[count++], owners, OWNER_BYTES);
            total += size;
        }
    }
    globfree(&paths);
    return total;
}

static unsigned long long array_bytes_for(unsigned long long cache) {
    unsigned long long memory = (unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE);
    unsigned long long size = cache > 0 ? 4 * cache : 1ULL << 28;
    return size < memory / 8 ? size : memory / 8;
}

static void print(const Shared *shared, int loop, unsigned long long array_bytes, int repetitions) {
    double fastest = INFINITY, slowest = 0, sum = 0;
    for (int i = 1; i < repetitions; i++) {
        double seconds = shared->seconds[loop][i];
        fastest = seconds < fastest ? seconds : fastest;
        slowest = seconds > slowest ? seconds : slowest;
        sum += seconds;
    }
    printf("%s %llu %.9f %.9f %.9f\n", NAMES[loop], (unsigned long long)ARRAYS[loop] * array_bytes, fastest,
           sum / (repetitions - 1), slowest);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: stream ARRAY_BYTES REPETITIONS TASKS\n");
        return 2;
    }
    unsigned long long array_bytes = number(argv[1]), repetitions = number(argv[2]), tasks = number(argv[3]);
    unsigned long long cache = last_level_caches();
    if (array_bytes == 0)
        array_bytes = array_bytes_for(cache);
    if (repetitions < 2 || repetitions > MOST_REPETITIONS || tasks < 1 || tasks > MOST_TASKS ||
        array_bytes < LEAST_ARRAY_BYTES) {
        fprintf(stderr, "stream: 2 to %d repetitions, 1 to %d tasks, at least %d bytes\n", MOST_REPETITIONS,
                MOST_TASKS, LEAST_ARRAY_BYTES);
        return 2;
    }
    size_t size = array_bytes / sizeof(double) / tasks;
    array_bytes = size * tasks * sizeof(double);
    Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("allocate memory");
    run_tasks(shared, (int)tasks, size, (int)repetitions);
    printf("cache %llu\narray %llu\n", cache, array_bytes);
    for (int loop = 0; loop < LOOPS; loop++)
        print(shared, loop, array_bytes, (int)repetitions);
    if (fflush(stdout) != 0)
        die("write the output");
    return 0;
}
