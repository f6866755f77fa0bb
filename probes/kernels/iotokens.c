/* Limits how many processes read and write a storage area at once (LD_PRELOAD; docs/storage.md).
 *
 * A process asks a server for a token before it reads from a file of the area, and for another one before it
 * writes. It keeps a token for a quantum of bytes and while it is busy, and beyond as long as no other process
 * waits. The server says when one does: then the token is given back after the quantum, or once the process has
 * not used it for the linger. A process that ends gives back its tokens, as its connection ends.
 *
 * Environment: GRIDCAST_TOKENS_SOCKET (of the server), GRIDCAST_TOKENS_AREA (an absolute directory),
 * GRIDCAST_TOKENS_QUANTUM (bytes), GRIDCAST_TOKENS_LINGER (seconds), GRIDCAST_TOKENS_RUN (a file that the
 * processes below `tokens run` share). If the server cannot be reached, or ends, programs go on without limits,
 * after one warning of them all; if `tokens run` was killed, of each process that was connected.
 *
 * Messages are single characters. To the server: r, w ask for a token; R, W give it back. From it: r, w grant a
 * token; x, y: a process waits for a token to read, to write.
 *
 * Symbols are resolved at their first use: libraries do I/O before the constructor of this one runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { READ, WRITE, DIRECTIONS, REMEMBERED_FILES = 1024, HIGH_DESCRIPTOR = 800 };

static const char ASK[] = "rw", GIVE_BACK[] = "RW", GRANTED[] = "rw", CONTENDED[] = "xy";

typedef struct {
    int is_held, is_asked, is_contended;
    int busy; /* calls that are using it */
    int64_t used_bytes;
    double last_used;
} Token;

typedef enum { UNKNOWN, CONNECTED, OFF } State;

#define LABEL "gridcast-tokens"
typedef struct {
    char label[sizeof LABEL], has_asked, has_warned;
} RunFlags;

static RunFlags *run; /* of `tokens run`; NULL without */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of everything below */
static pthread_cond_t granted = PTHREAD_COND_INITIALIZER;
static State state = UNKNOWN;
static int server = -1;
static ino_t server_inode; /* of the connection: a program may close descriptors that are not its own */
static Token tokens[DIRECTIONS];
static char area[PATH_MAX];
static size_t area_length;
static int64_t quantum_bytes = 16 << 20;
static double linger_seconds = 0.005;

/* What is known of a descriptor; it is valid while device and inode are the same. */
typedef struct {
    dev_t device;
    ino_t inode;
    char is_known, is_in_area;
} File;
static File remembered[REMEMBERED_FILES];

static __thread int is_inside; /* a call of ours: not limited */

#define REAL(name) ((__typeof__(&name))real(#name, &real_##name))
static void *real(const char *name, void **resolved) {
    if (*resolved == NULL)
        *resolved = dlsym(RTLD_NEXT, name);
    return *resolved;
}

static void *real_read, *real_write, *real_pread, *real_pread64, *real_pwrite, *real_pwrite64, *real_readv,
    *real_writev, *real_preadv, *real_preadv64, *real_pwritev, *real_pwritev64, *real_fread, *real_fwrite,
    *real_fflush, *real_copy_file_range, *real_sendfile, *real_fsync, *real_fdatasync;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int may_warn(void) { /* the lock is held */
    return run != NULL ? !__atomic_exchange_n(&run->has_warned, 1, __ATOMIC_RELAXED) : state == CONNECTED;
}

static void turn_off(const char *why) { /* the lock is held */
    if (state != OFF && *why && may_warn()) {
        char line[256];
        int length = snprintf(line, sizeof line, "gridcast tokens: %s: programs go on without limits\n", why);
        ssize_t written = REAL(write)(STDERR_FILENO, line, (size_t)length);
        (void)written;
    }
    state = OFF;
    pthread_cond_broadcast(&granted);
}

/* ---- the connection ---- */

static int is_ours(int descriptor) {
    struct stat status;
    return descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_ino == server_inode &&
           S_ISSOCK(status.st_mode);
}

static int tell(char message) { /* the lock is held */
    if (is_ours(server) && send(server, &message, 1, MSG_NOSIGNAL) == 1)
        return 1;
    turn_off("the server has ended");
    return 0;
}

static void give_back(int direction) { /* the lock is held */
    tokens[direction] = (Token){.busy = tokens[direction].busy};
    tell(GIVE_BACK[direction]);
}

static void give_back_if_due(int direction, double time) { /* the lock is held */
    Token *token = &tokens[direction];
    if (token->is_held && token->is_contended && token->busy == 0 &&
        (token->used_bytes >= quantum_bytes || time - token->last_used >= linger_seconds))
        give_back(direction);
}

/* Return how long to wait for messages: until a contended token that is not in use has lingered. */
static int wait_milliseconds(void) { /* the lock is held */
    double time = now(), wait = -1.0;
    for (int direction = READ; direction < DIRECTIONS; direction++) {
        Token *token = &tokens[direction];
        if (!token->is_held || !token->is_contended)
            continue;
        double left = token->busy ? linger_seconds : token->last_used + linger_seconds - time;
        left = left > 0.0 ? left : 0.0;
        wait = wait < 0.0 || left < wait ? left : wait;
    }
    return wait < 0.0 ? -1 : (int)(1e3 * wait) + 1;
}

static void receive(const char *messages, ssize_t count) { /* the lock is held */
    for (ssize_t place = 0; place < count; place++)
        for (int direction = READ; direction < DIRECTIONS; direction++) {
            if (messages[place] == GRANTED[direction]) {
                tokens[direction].is_held = 1, tokens[direction].is_asked = 0;
                tokens[direction].last_used = now();
                pthread_cond_broadcast(&granted);
            }
            if (messages[place] == CONTENDED[direction])
                tokens[direction].is_contended = 1;
        }
}

/* Receive messages of the connection *argument* until it ends. */
static void *listen_to_server(void *argument) {
    int descriptor = (int)(intptr_t)argument;
    is_inside = 1;
    for (int wait = -1;;) {
        struct pollfd waiting = {descriptor, POLLIN, 0};
        char messages[64];
        ssize_t count = poll(&waiting, 1, wait) > 0 ? recv(descriptor, messages, sizeof messages, 0) : -2;
        pthread_mutex_lock(&lock);
        int is_over = count == 0 || (count == -1 && errno != EINTR && errno != EAGAIN);
        if (is_over)
            turn_off("the server has ended");
        receive(messages, count);
        double time = now();
        for (int direction = READ; direction < DIRECTIONS && state == CONNECTED; direction++)
            give_back_if_due(direction, time);
        wait = wait_milliseconds();
        is_over = is_over || state != CONNECTED;
        pthread_mutex_unlock(&lock);
        if (is_over)
            return NULL;
    }
}

/* After a fork the connection is the parent's. */
static void forget(void) {
    if (server >= 0)
        close(server);
    server = -1;
    memset(tokens, 0, sizeof tokens);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&granted, NULL);
    if (state == CONNECTED)
        state = UNKNOWN;
}

static int start_listening(int descriptor) {
    sigset_t all, before;
    pthread_t listener;
    sigfillset(&all); /* signals are for the program's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&listener, NULL, listen_to_server, (void *)(intptr_t)descriptor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_detach(listener);
    return error;
}

static void connect_to_server(const char *path) { /* the lock is held */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int low = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (low >= 0 && connect(low, (struct sockaddr *)&address, sizeof address) == 0) {
        int high = fcntl(low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR); /* programs use and close low ones */
        server = high >= 0 ? high : fcntl(low, F_DUPFD_CLOEXEC, 3);
    }
    if (low >= 0)
        close(low);
    if (server < 0 || fstat(server, &status) != 0) {
        turn_off("the server cannot be reached");
        return;
    }
    server_inode = status.st_ino;
    state = CONNECTED;
    if (start_listening(server) != 0)
        turn_off("no thread can be started");
}

/* Map the flags at *path*; return NULL if `tokens run` has ended, and *path* is no file or another one. */
static RunFlags *mapped_flags(const char *path) {
    RunFlags found, *flags = MAP_FAILED;
    int descriptor = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    if (REAL(pread)(descriptor, &found, sizeof found, 0) == sizeof found &&
        memcmp(found.label, LABEL, sizeof LABEL) == 0)
        flags = mmap(NULL, sizeof *flags, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    return flags == MAP_FAILED ? NULL : flags;
}

static void set_up(void) { /* the lock is held */
    static int has_handler;
    const char *path = getenv("GRIDCAST_TOKENS_SOCKET"), *directory = getenv("GRIDCAST_TOKENS_AREA");
    const char *quantum = getenv("GRIDCAST_TOKENS_QUANTUM"), *linger = getenv("GRIDCAST_TOKENS_LINGER");
    if (path == NULL || directory == NULL) {
        turn_off("");
        return;
    }
    quantum_bytes = quantum ? strtoll(quantum, NULL, 10) : quantum_bytes;
    linger_seconds = linger ? strtod(linger, NULL) : linger_seconds;
    snprintf(area, sizeof area, "%s", directory);
    area_length = strlen(area);
    if (run == NULL)
        run = mapped_flags(getenv("GRIDCAST_TOKENS_RUN"));
    if (!has_handler)
        pthread_atfork(NULL, NULL, forget);
    has_handler = 1;
    connect_to_server(path);
}

/* ---- the files ---- */

static int is_path_in_area(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length >= (ssize_t)area_length && strncmp(path, area, area_length) == 0 &&
           (path[area_length] == '/' || (size_t)length == area_length);
}

static int is_in_area(int descriptor) { /* the lock is held */
    struct stat status;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    File found = {status.st_dev, status.st_ino, 1, 0};
    if (descriptor >= REMEMBERED_FILES)
        return is_path_in_area(descriptor);
    File *file = &remembered[descriptor];
    if (!file->is_known || file->device != found.device || file->inode != found.inode) {
        found.is_in_area = (char)is_path_in_area(descriptor);
        *file = found;
    }
    return file->is_in_area;
}

/* ---- calls ---- */

/* Wait for the token of *direction* if *descriptor* is of the area. Return whether the call uses the token. */
static int begin(int direction, int descriptor) {
    if (is_inside || state == OFF)
        return 0;
    int kept = errno, is_used = 0;
    is_inside = 1;
    pthread_mutex_lock(&lock);
    if (state == UNKNOWN)
        set_up();
    if (state == CONNECTED && is_in_area(descriptor)) {
        Token *token = &tokens[direction];
        while (state == CONNECTED && !token->is_held) {
            if (!token->is_asked) {
                token->is_asked = 1;
                if (run != NULL)
                    run->has_asked = 1;
                tell(ASK[direction]);
            } else
                pthread_cond_wait(&granted, &lock);
        }
        is_used = state == CONNECTED;
        token->busy += is_used;
    }
    pthread_mutex_unlock(&lock);
    is_inside = 0;
    errno = kept;
    return is_used;
}

static void end(int direction, int is_used, ssize_t bytes) {
    if (!is_used)
        return;
    int kept = errno;
    is_inside = 1;
    pthread_mutex_lock(&lock);
    Token *token = &tokens[direction];
    if (token->busy > 0)
        token->busy--;
    token->used_bytes += bytes > 0 ? bytes : 0;
    token->last_used = now();
    if (state == CONNECTED)
        give_back_if_due(direction, token->last_used);
    pthread_mutex_unlock(&lock);
    is_inside = 0;
    errno = kept;
}

#define LIMITED(direction, descriptor, name, ...)                                                                      \
    int is_used = begin(direction, descriptor);                                                                        \
    ssize_t bytes = (ssize_t)REAL(name)(__VA_ARGS__);                                                                  \
    end(direction, is_used, bytes);                                                                                    \
    return bytes

ssize_t read(int file, void *to, size_t size) { LIMITED(READ, file, read, file, to, size); }
ssize_t write(int file, const void *from, size_t size) { LIMITED(WRITE, file, write, file, from, size); }
ssize_t pread(int file, void *to, size_t size, off_t offset) { LIMITED(READ, file, pread, file, to, size, offset); }
ssize_t pread64(int file, void *to, size_t size, off64_t offset) {
    LIMITED(READ, file, pread64, file, to, size, offset);
}
ssize_t pwrite(int file, const void *from, size_t size, off_t offset) {
    LIMITED(WRITE, file, pwrite, file, from, size, offset);
}
ssize_t pwrite64(int file, const void *from, size_t size, off64_t offset) {
    LIMITED(WRITE, file, pwrite64, file, from, size, offset);
}
ssize_t readv(int file, const struct iovec *to, int count) { LIMITED(READ, file, readv, file, to, count); }
ssize_t writev(int file, const struct iovec *from, int count) { LIMITED(WRITE, file, writev, file, from, count); }
ssize_t preadv(int file, const struct iovec *to, int count, off_t offset) {
    LIMITED(READ, file, preadv, file, to, count, offset);
}
ssize_t preadv64(int file, const struct iovec *to, int count, off64_t offset) {
    LIMITED(READ, file, preadv64, file, to, count, offset);
}
ssize_t pwritev(int file, const struct iovec *from, int count, off_t offset) {
    LIMITED(WRITE, file, pwritev, file, from, count, offset);
}
ssize_t pwritev64(int file, const struct iovec *from, int count, off64_t offset) {
    LIMITED(WRITE, file, pwritev64, file, from, count, offset);
}
ssize_t sendfile(int to, int from, off_t *offset, size_t size) { LIMITED(READ, from, sendfile, to, from, offset, size); }

/* Programs compiled with _FORTIFY_SOURCE call these. */
ssize_t __read_chk(int file, void *to, size_t size, size_t room) {
    return size <= room ? read(file, to, size) : (abort(), -1);
}
ssize_t __pread_chk(int file, void *to, size_t size, off_t offset, size_t room) {
    return size <= room ? pread(file, to, size, offset) : (abort(), -1);
}
ssize_t __pread64_chk(int file, void *to, size_t size, off64_t offset, size_t room) {
    return size <= room ? pread64(file, to, size, offset) : (abort(), -1);
}
size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream) {
    return size == 0 || count <= room / size ? fread(to, size, count, stream) : (abort(), 0);
}

/* Reads and writes: first one token, then the other. A token that is not used lingers, and is then given back. */
ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size, unsigned flags) {
    int is_writing = begin(WRITE, to), is_reading = begin(READ, from);
    ssize_t bytes = REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags);
    end(READ, is_reading, bytes);
    end(WRITE, is_writing, bytes);
    return bytes;
}

size_t fread(void *to, size_t size, size_t count, FILE *stream) {
    int is_used = begin(READ, fileno(stream));
    size_t items = REAL(fread)(to, size, count, stream);
    end(READ, is_used, (ssize_t)(items * size));
    return items;
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *stream) {
    int is_used = begin(WRITE, fileno(stream));
    size_t items = REAL(fwrite)(from, size, count, stream);
    end(WRITE, is_used, (ssize_t)(items * size));
    return items;
}

int fflush(FILE *stream) {
    int is_used = stream != NULL && begin(WRITE, fileno(stream));
    int result = REAL(fflush)(stream);
    end(WRITE, is_used, 0);
    return result;
}

int fsync(int file) {
    int is_used = begin(WRITE, file);
    int result = REAL(fsync)(file);
    end(WRITE, is_used, 0);
    return result;
}

int fdatasync(int file) {
    int is_used = begin(WRITE, file);
    int result = REAL(fdatasync)(file);
    end(WRITE, is_used, 0);
    return result;
}
