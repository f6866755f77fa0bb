/* The kernel of stream sweeps: tasks write and read their files, and only so many of them at once.
 *
 *   streams FILES TASKS BINS BIN_BYTES REQUEST_BYTES IS_DIRECT READERS WRITERS BUSY_SECONDS
 *
 * After MADbench (J. Borrill, J. Carter, L. Oliker, D. Skinner, R. Biswas, Integrated performance monitoring of a
 * cosmology application on leading HEC platforms, ICPP 2005). Each of TASKS processes has its file FILES.TASK of BINS
 * parts of BIN_BYTES. Three phases follow each other: write, read, read. In each, for each part, the tasks are busy
 * for BUSY_SECONDS, meet at a barrier, write or read their part in requests of REQUEST_BYTES, and meet again. At most
 * READERS tasks read and WRITERS tasks write at a time; a task keeps its token for a whole part, and tokens are
 * granted in order of arrival. After the first phase all data are on the device. The files are removed at the end.
 *
 * Prints "total T" and for each phase "PHASE seconds S io I barrier B spread D": means over the tasks of the time for
 * I/O, waits for tokens included, and at the barrier after it; the mean over the parts of the time between the first
 * and the last end of a task's I/O. An error ends the program with a message and status 1; where the file system has
 * no direct I/O (EINVAL) status 3.
 */
#define _GNU_SOURCE
#include "checked.h"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ALIGNMENT = 4096, NO_DIRECT_IO = 3, MOST_TASKS = 1024, PHASES = 3, PATH_BYTES = 4096 };

static const char *const PHASE_NAMES[PHASES] = {"write", "read", "reread"};

typedef struct {
    long limit, arrived, left; /* a ticket is granted when fewer than limit earlier ones have not left */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} Tokens;

typedef struct {
    double seconds, io, barrier, spread;
} Times;

/* In memory that the processes share. */
typedef struct {
    pthread_barrier_t barrier;
    Tokens readers, writers;
    double first_begin[MOST_TASKS], last_end[MOST_TASKS], ends[MOST_TASKS];
    Times times[MOST_TASKS][PHASES];
} Shared;

typedef struct {
    const char *files;
    long tasks, bins, bin_bytes, request_bytes;
    int is_direct;
    double busy_seconds;
    Shared *shared;
} Job;

static void fail_on(const char *doing, const char *path, int is_direct) {
    int error = errno;
    fprintf(stderr, "%s: cannot %s %s: %s\n", program, doing, path, strerror(error));
    exit(is_direct && error == EINVAL ? NO_DIRECT_IO : 1);
}

static void check_shared(int error) {
    if (error)
        die("cannot share memory: %s", strerror(error));
}

static void make_tokens(Tokens *tokens, long limit) {
    pthread_mutexattr_t lock;
    pthread_condattr_t changed;
    pthread_mutexattr_init(&lock);
    pthread_condattr_init(&changed);
    check_shared(pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED));
    check_shared(pthread_condattr_setpshared(&changed, PTHREAD_PROCESS_SHARED));
    check_shared(pthread_mutex_init(&tokens->lock, &lock));
    check_shared(pthread_cond_init(&tokens->changed, &changed));
    tokens->limit = limit;
}

static Shared *make_shared(long tasks, long readers, long writers) {
    Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("cannot share memory: %s", strerror(errno));
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    check_shared(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    check_shared(pthread_barrier_init(&shared->barrier, &attributes, (unsigned)tasks));
    make_tokens(&shared->readers, readers);
    make_tokens(&shared->writers, writers);
    return shared;
}

static void take(Tokens *tokens) {
    pthread_mutex_lock(&tokens->lock);
    long ticket = tokens->arrived++;
    while (ticket - tokens->left >= tokens->limit)
        pthread_cond_wait(&tokens->changed, &tokens->lock);
    pthread_mutex_unlock(&tokens->lock);
}

static void give_back(Tokens *tokens) {
    pthread_mutex_lock(&tokens->lock);
    tokens->left++;
    pthread_cond_broadcast(&tokens->changed);
    pthread_mutex_unlock(&tokens->lock);
}

/* Random content: some disks and file systems compress data. */
static unsigned char *random_block(size_t bytes, uint64_t state) {
    void *block = NULL;
    if ((errno = posix_memalign(&block, ALIGNMENT, bytes)) != 0)
        die("cannot allocate %zu bytes: %s", bytes, strerror(errno));
    for (size_t at = 0; at < bytes; at++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((unsigned char *)block)[at] = (unsigned char)(state >> 56);
    }
    return block;
}

static void be_busy(double seconds) {
    for (double until = now() + seconds; now() < until;)
        ;
}

static void use_part(const Job *job, int file, const char *path, unsigned char *block, long bin, int is_write) {
    for (long done = 0; done < job->bin_bytes;) {
        long left = job->bin_bytes - done, size = left < job->request_bytes ? left : job->request_bytes;
        off_t at = (off_t)bin * job->bin_bytes + done;
        ssize_t moved = is_write ? pwrite(file, block, (size_t)size, at) : pread(file, block, (size_t)size, at);
        if (moved == 0)
            errno = is_write ? ENOSPC : EIO; /* a full disk; a truncated file */
        if (moved <= 0)
            fail_on(is_write ? "write" : "read", path, job->is_direct);
        done += moved;
    }
}

/* Add the time between the first and the last end of the tasks' I/O to the spread of task 0. */
static void add_spread(const Job *job, Times *times) {
    double first = job->shared->ends[0], last = first;
    for (long task = 1; task < job->tasks; task++) {
        first = job->shared->ends[task] < first ? job->shared->ends[task] : first;
        last = job->shared->ends[task] > last ? job->shared->ends[task] : last;
    }
    times->spread += (last - first) / (double)job->bins;
}

static void do_phase(const Job *job, long task, int phase, const char *path, unsigned char *block) {
    int is_write = phase == 0, flags = is_write ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
    int file = open(path, flags | (job->is_direct ? O_DIRECT : 0), 0600);
    if (file < 0)
        fail_on("open", path, job->is_direct);
    Tokens *tokens = is_write ? &job->shared->writers : &job->shared->readers;
    Times *times = &job->shared->times[task][phase];
    double began = now();
    for (long bin = 0; bin < job->bins; bin++) {
        be_busy(job->busy_seconds);
        pthread_barrier_wait(&job->shared->barrier);
        double start = now();
        take(tokens);
        use_part(job, file, path, block, bin, is_write);
        if (is_write && bin == job->bins - 1 && fsync(file) != 0 && errno != EINVAL)
            die("cannot write %s: %s", path, strerror(errno));
        give_back(tokens);
        double end = now();
        job->shared->ends[task] = end;
        pthread_barrier_wait(&job->shared->barrier);
        times->io += end - start;
        times->barrier += now() - end;
        if (task == 0)
            add_spread(job, times);
    }
    times->seconds = now() - began;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); /* advice, which a file system may ignore */
    close_or_die(file, path);
}

static void do_task(const Job *job, long task) {
    char path[PATH_BYTES];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof path, "%s.%ld", job->files, task);
    unsigned char *block = random_block((size_t)job->request_bytes, (uint64_t)task + 1);
    pthread_barrier_wait(&job->shared->barrier);
    job->shared->first_begin[task] = now();
    for (int phase = 0; phase < PHASES; phase++)
        do_phase(job, task, phase, path, block);
    job->shared->last_end[task] = now();
    pthread_barrier_wait(&job->shared->barrier);
    unlink(path);
    exit(0);
}

/* Wait for all tasks; if one fails, end the others, which would wait for it at the barrier. */
static int wait_for(const pid_t *processes, long tasks) {
    int status, failure = 0;
    for (long left = tasks; left > 0; left--) {
        if (wait(&status) < 0)
            break;
        if (status == 0 || failure)
            continue;
        failure = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        for (long task = 0; task < tasks; task++)
            kill(processes[task], SIGKILL);
    }
    return failure;
}

static double total_seconds(const Job *job) {
    double begin = job->shared->first_begin[0], end = job->shared->last_end[0];
    for (long task = 1; task < job->tasks; task++) {
        begin = job->shared->first_begin[task] < begin ? job->shared->first_begin[task] : begin;
        end = job->shared->last_end[task] > end ? job->shared->last_end[task] : end;
    }
    return end - begin;
}

static void print_phase(const Job *job, int phase) {
    Times sum = {0};
    for (long task = 0; task < job->tasks; task++) {
        const Times *own = &job->shared->times[task][phase];
        sum.seconds = own->seconds > sum.seconds ? own->seconds : sum.seconds;
        sum.io += own->io / (double)job->tasks;
        sum.barrier += own->barrier / (double)job->tasks;
        sum.spread += own->spread;
    }
    printf("%s seconds %.6f io %.6f barrier %.6f spread %.6f\n", PHASE_NAMES[phase], sum.seconds, sum.io, sum.barrier,
           sum.spread);
}

int main(int argc, char **argv) {
    program = "streams";
    if (argc != 10)
        die("usage: streams FILES TASKS BINS BIN_BYTES REQUEST_BYTES IS_DIRECT READERS WRITERS BUSY_SECONDS");
    Job job = {.files = argv[1],
               .tasks = whole("TASKS", argv[2], 1, MOST_TASKS),
               .bins = whole("BINS", argv[3], 1, 1e6),
               .bin_bytes = whole("BIN_BYTES", argv[4], 1, 1e15),
               .request_bytes = whole("REQUEST_BYTES", argv[5], 1, 1 << 30),
               .is_direct = (int)whole("IS_DIRECT", argv[6], 0, 1),
               .busy_seconds = number("BUSY_SECONDS", argv[9], 0, 1e6)};
    if (strlen(job.files) > PATH_BYTES - 32)
        die("the path is too long");
    long readers = whole("READERS", argv[7], 1, job.tasks), writers = whole("WRITERS", argv[8], 1, job.tasks);
    job.shared = make_shared(job.tasks, readers, writers);
    pid_t processes[MOST_TASKS];
    for (long task = 0; task < job.tasks; task++) {
        processes[task] = fork();
        if (processes[task] == 0)
            do_task(&job, task);
        if (processes[task] < 0) {
            int error = errno;
            for (long started = 0; started < task; started++)
                kill(processes[started], SIGKILL);
            die("cannot start %ld tasks: %s", job.tasks, strerror(error));
        }
    }
    int failure = wait_for(processes, job.tasks);
    if (failure)
        return failure; /* the task has said why */
    printf("total %.6f\n", total_seconds(&job));
    for (int phase = 0; phase < PHASES; phase++)
        print_phase(&job, phase);
    finish_output();
    return 0;
}
