/* The kernel of the replay: plays an I/O signature with as many tasks, which are processes.
 *
 *   replay PLAN DIRECTORY spin|sleep|none
 *
 * PLAN is what probes/common/signature.py writes. The files are made in DIRECTORY, which is empty: files that the
 * application found are written first, and stay in the page cache as far as they were there. Then all tasks begin
 * at once. Between two calls a task computes (spin), sleeps or does nothing for as long as the application did.
 *
 * Prints for each task "task T", then calls, bytes and seconds of each class (read, write, sync, metadata, wait,
 * think), and at the end "elapsed SECONDS". An error ends all tasks with a message and status 1; so does the death
 * of the first process.
 */
#define _GNU_SOURCE
#include "checked.h"
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* The order is that of probes/common/io_classes.py. */
enum {
    NOTHING, OPEN, CLOSE, READ, WRITE, FREAD, FWRITE, FLUSH, FSYNC, FDATASYNC, ADVISE, TRUNCATE, ALLOCATE, STAT,
    UNLINK, RENAME, MKDIR, RMDIR, LOCK, UNLOCK, BARRIER, LOOP, END, DONE
};
enum { IN_READ, IN_WRITE, IN_SYNC, IN_METADATA, IN_WAIT, IN_THINK, CLASSES };
enum { CREATED = 1, TRUNCATED = 2, DIRECT = 4, APPENDING = 8, FOR_READING = 16, FOR_WRITING = 32 };
enum { NEXT, AFFINE, RANDOM };
enum { MAX_LOOPS = 17, ALIGNMENT = 4096, PREPARED_BYTES = 1 << 20 };

static const int CLASS_OF[] = {[OPEN] = IN_METADATA, [CLOSE] = IN_METADATA, [READ] = IN_READ, [WRITE] = IN_WRITE,
                               [FREAD] = IN_READ, [FWRITE] = IN_WRITE, [FLUSH] = IN_WRITE, [FSYNC] = IN_SYNC,
                               [FDATASYNC] = IN_SYNC, [ADVISE] = IN_METADATA, [TRUNCATE] = IN_METADATA,
                               [ALLOCATE] = IN_METADATA, [STAT] = IN_METADATA, [UNLINK] = IN_METADATA,
                               [RENAME] = IN_METADATA, [MKDIR] = IN_METADATA, [RMDIR] = IN_METADATA,
                               [LOCK] = IN_WAIT, [UNLOCK] = IN_WAIT};

typedef struct {
    int operation, flags, place, steps, slot_steps;
    int64_t size, think, by_task, times;
    int64_t slot[MAX_LOOPS + 1]; /* and a step for each loop */
    int64_t at[MAX_LOOPS + 1];   /* NEXT: none; AFFINE: the offset (RENAME: slot) and a step for each loop; RANDOM: low, high, align */
} Instruction;

typedef struct {
    char name[80];
    int64_t initial;
    double cached;
    int is_direct;
} File;

typedef struct {
    int first, count, slots;
    int64_t *base, *step; /* of each slot: its file, and the step from task to task */
    Instruction *instructions;
    size_t length;
} Program;

typedef struct {
    int64_t calls[CLASSES], bytes[CLASSES];
    double seconds[CLASSES];
} Times;

typedef struct { /* in the memory that all tasks share */
    pthread_barrier_t barrier;
    double began, ended;
    Times times[];
} Shared;

typedef struct { /* a file of a task */
    int descriptor, is_direct, flags;
    FILE *stream;
    int64_t stream_position, end; /* of the last call */
    const char *name;
} Slot;

static enum { SPIN, SLEEP, NONE } thinking;
static int directory, tasks, file_count, program_count;
static File *files;
static Program *programs;
static Shared *shared;
static char *buffer;
static int64_t buffer_bytes = PREPARED_BYTES;
static uint64_t random_state;

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t random_number(void) {
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* ---- the plan ---- */

static void expect(FILE *plan, int found, int wanted) {
    if (found != wanted)
        die("the plan is damaged at byte %ld", ftell(plan));
}

/* Read a place and its steps; return how many numbers there are. */
static int read_steps(FILE *plan, int64_t *to) {
    int count;
    expect(plan, fscanf(plan, "%d", &count), 1);
    if (count < 1 || count > MAX_LOOPS + 1)
        die("the plan nests loops too deep");
    for (int step = 0; step < count; step++)
        expect(plan, fscanf(plan, "%" SCNd64, &to[step]), 1);
    return count;
}

static int64_t stepped(const int64_t *steps, int count, const int64_t *iterations) {
    int64_t place = steps[0];
    for (int step = 1; step < count; step++)
        place += steps[step] * iterations[step - 1];
    return place;
}

static Instruction read_call(FILE *plan) {
    Instruction call = {.times = 1};
    char place[2];
    expect(plan, fscanf(plan, "%d", &call.operation), 1);
    call.slot_steps = read_steps(plan, call.slot);
    expect(plan, fscanf(plan, "%" SCNd64 " %" SCNd64 " %d %" SCNd64 " %1s", &call.size, &call.think, &call.flags,
                        &call.by_task, place), 5);
    call.place = *place == 'n' ? NEXT : *place == 'a' ? AFFINE : RANDOM;
    if (call.place == AFFINE)
        call.steps = read_steps(plan, call.at);
    if (call.place == RANDOM)
        expect(plan, fscanf(plan, "%" SCNd64 " %" SCNd64 " %" SCNd64, &call.at[0], &call.at[1], &call.at[2]), 3);
    int is_moving = call.operation == READ || call.operation == WRITE || call.operation == FREAD ||
                    call.operation == FWRITE;
    if (is_moving && call.size > buffer_bytes)
        buffer_bytes = call.size;
    return call;
}

static void *grown(void *memory, size_t count, size_t size) {
    memory = realloc(memory, count * size);
    if (memory == NULL)
        die("cannot allocate %zu times %zu bytes: %s", count, size, strerror(errno));
    return memory;
}

static void read_slots(FILE *plan, Program *part) {
    int64_t first, by_task, by_slot;
    int count;
    expect(plan, fscanf(plan, " slots %" SCNd64 " %" SCNd64 " %d %" SCNd64, &first, &by_task, &count, &by_slot), 4);
    part->base = grown(part->base, (size_t)(part->slots + count), sizeof(int64_t));
    part->step = grown(part->step, (size_t)(part->slots + count), sizeof(int64_t));
    for (int slot = 0; slot < count; slot++, part->slots++)
        part->base[part->slots] = first + by_slot * slot, part->step[part->slots] = by_task;
}

static void read_program(FILE *plan, Program *part) {
    char word[16] = "";
    size_t room = 0;
    int runs;
    expect(plan, fscanf(plan, " program %d %d %d", &part->first, &part->count, &runs), 3);
    for (int run = 0; run < runs; run++)
        read_slots(plan, part);
    while (strcmp(word, "done") != 0) {
        Instruction instruction = {.operation = DONE};
        expect(plan, fscanf(plan, "%15s", word), 1);
        if (strcmp(word, "call") == 0)
            instruction = read_call(plan);
        else if (strcmp(word, "loop") == 0) {
            instruction.operation = LOOP;
            expect(plan, fscanf(plan, "%" SCNd64, &instruction.times), 1);
        } else
            instruction.operation = strcmp(word, "end") == 0 ? END : strcmp(word, "barrier") == 0 ? BARRIER : DONE;
        if (part->length == room) {
            room = room ? 2 * room : 64;
            part->instructions = grown(part->instructions, room, sizeof(Instruction));
        }
        part->instructions[part->length++] = instruction;
    }
}

static void read_plan(const char *path) {
    FILE *plan = fopen(path, "r");
    int version, families, file = 0;
    if (plan == NULL)
        die("cannot open %s: %s", path, strerror(errno));
    expect(plan, fscanf(plan, "plan %d %d %d %d %d", &version, &tasks, &file_count, &families, &program_count), 5);
    if (version != 1)
        die("the plan has version %d", version);
    files = allocate((size_t)file_count + 1, sizeof(File));
    for (int family = 0; family < families; family++) {
        File values = {.initial = 0};
        int count;
        expect(plan, fscanf(plan, " files %64s %d %" SCNd64 " %lf %d", values.name, &count, &values.initial,
                            &values.cached, &values.is_direct), 5);
        if (count > file_count - file)
            die("the plan has more files than it says");
        for (int number = 0; number < count; number++, file++) {
            files[file] = values;
            snprintf(files[file].name, sizeof files[file].name, "%.64s.%d", values.name, number);
        }
    }
    programs = allocate((size_t)program_count + 1, sizeof(Program));
    for (int part = 0; part < program_count; part++)
        read_program(plan, &programs[part]);
    fclose(plan);
}

/* ---- files that the application found ---- */

static void prepare(const File *file) {
    int descriptor = openat(directory, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (descriptor < 0)
        die("cannot make %s: %s", file->name, strerror(errno));
    for (int64_t done = 0; done < file->initial;) {
        int64_t left = file->initial - done, bytes = left < PREPARED_BYTES ? left : PREPARED_BYTES;
        write_at(descriptor, file->name, buffer, (size_t)bytes, done);
        done += bytes;
    }
    if (fsync(descriptor) != 0)
        die("cannot write %s: %s", file->name, strerror(errno));
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    for (int64_t done = 0, cached = (int64_t)(file->cached * (double)file->initial); done < cached;) {
        int64_t left = cached - done, bytes = left < PREPARED_BYTES ? left : PREPARED_BYTES;
        read_at(descriptor, file->name, buffer, (size_t)bytes, done);
        done += bytes;
    }
    close_or_die(descriptor, file->name);
}

/* ---- calls ---- */

static void open_slot(Slot *slot, int flags) {
    int access = flags & FOR_READING ? flags & FOR_WRITING ? O_RDWR : O_RDONLY : O_WRONLY;
    int wanted = access | (flags & CREATED ? O_CREAT : 0) | (flags & TRUNCATED ? O_TRUNC : 0) |
                 (flags & APPENDING ? O_APPEND : 0) | (slot->is_direct || flags & DIRECT ? O_DIRECT : 0);
    slot->descriptor = openat(directory, slot->name, wanted | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (slot->descriptor < 0 && errno == EINVAL && wanted & O_DIRECT) /* there is no direct I/O */
        slot->descriptor = openat(directory, slot->name, (wanted & ~O_DIRECT) | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (slot->descriptor < 0 && errno == ENOENT) /* the file was there, and the trace does not show by whom */
        slot->descriptor = openat(directory, slot->name, wanted | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (slot->descriptor < 0)
        die("cannot open %s: %s", slot->name, strerror(errno));
    slot->flags = flags, slot->end = 0, slot->stream_position = 0;
}

static void close_slot(Slot *slot) {
    if (slot->stream != NULL && fclose(slot->stream) != 0)
        die("cannot write %s: %s", slot->name, strerror(errno));
    if (slot->descriptor >= 0)
        close_or_die(slot->descriptor, slot->name);
    slot->stream = NULL, slot->descriptor = -1;
}

static int64_t move(Slot *slot, int is_write, int64_t size, int64_t offset) {
    int64_t done = 0;
    do {
        ssize_t moved = is_write ? pwrite(slot->descriptor, buffer + done, (size_t)(size - done), offset + done)
                                 : pread(slot->descriptor, buffer + done, (size_t)(size - done), offset + done);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0)
            die("cannot %s %s: %s", is_write ? "write" : "read", slot->name, strerror(errno));
        if (moved == 0)
            break;
        done += moved;
    } while (is_write && done < size); /* of a read, the application made another call if it wanted the rest */
    return done;
}

static int64_t stream(Slot *slot, int is_write, int64_t size, int64_t offset) {
    if (slot->stream == NULL) {
        int copy = dup(slot->descriptor);
        slot->stream = copy < 0 ? NULL : fdopen(copy, slot->flags & FOR_WRITING ? slot->flags & FOR_READING ? "r+" : "w" : "r");
        if (slot->stream == NULL)
            die("cannot open %s as a stream: %s", slot->name, strerror(errno));
        slot->stream_position = 0;
    }
    if (offset != slot->stream_position && fseeko(slot->stream, offset, SEEK_SET) != 0)
        die("cannot seek in %s: %s", slot->name, strerror(errno));
    size_t moved = is_write ? fwrite(buffer, 1, (size_t)size, slot->stream) : fread(buffer, 1, (size_t)size, slot->stream);
    if (moved < (size_t)size && ferror(slot->stream))
        die("cannot %s %s: %s", is_write ? "write" : "read", slot->name, strerror(errno));
    slot->stream_position = offset + (int64_t)moved;
    return (int64_t)moved;
}

static int lock_file(const Slot *slot, int64_t offset, short type) {
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset};
    int result;
    while ((result = fcntl(slot->descriptor, F_SETLKW, &range)) != 0 && errno == EINTR)
        ;
    return result;
}

/* Give a file its new name. It may have been there before the program ran, which the trace does not show. */
static void rename_file(const char *from, const char *to) {
    if (renameat(directory, from, directory, to) == 0)
        return;
    int made = errno == ENOENT ? openat(directory, from, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (made < 0 || close(made) != 0 || renameat(directory, from, directory, to) != 0)
        die("cannot rename %s to %s: %s", from, to, strerror(errno));
}

/* Make a call; return the bytes that it moved. Of RENAME, *offset* is the slot of the new name. */
static int64_t call(Slot *slot, const Instruction *made, int64_t offset, const Slot *slots) {
    struct stat status;
    int result = 0;
    switch (made->operation) {
    case READ: case WRITE:
        return move(slot, made->operation == WRITE, made->size, offset);
    case FREAD: case FWRITE:
        return stream(slot, made->operation == FWRITE, made->size, offset);
    case OPEN: open_slot(slot, made->flags); break;
    case CLOSE: close_slot(slot); break;
    case FLUSH: result = slot->stream ? fflush(slot->stream) : 0; break;
    case FSYNC: result = fsync(slot->descriptor); break;
    case FDATASYNC: result = fdatasync(slot->descriptor); break;
    case ADVISE: posix_fadvise(slot->descriptor, offset, made->size, made->flags); break;
    case TRUNCATE: result = ftruncate(slot->descriptor, made->size); break;
    case ALLOCATE: result = posix_fallocate(slot->descriptor, offset, made->size); break;
    case STAT: fstatat(directory, slot->name, &status, 0); break;
    case UNLINK: unlinkat(directory, slot->name, 0); break;
    case RENAME: rename_file(slot->name, slots[offset].name); break;
    case MKDIR: mkdirat(directory, slot->name, 0700); break;
    case RMDIR: unlinkat(directory, slot->name, AT_REMOVEDIR); break;
    case LOCK: result = lock_file(slot, offset, made->size ? F_WRLCK : F_RDLCK); break;
    case UNLOCK: result = lock_file(slot, offset, F_UNLCK); break;
    default: break;
    }
    if (result != 0)
        die("cannot do call %d on %s: %s", made->operation, slot->name, strerror(errno));
    return 0;
}

static int needs_descriptor(int operation) {
    return operation != OPEN && operation != CLOSE && (operation < STAT || operation > RMDIR);
}

static int64_t place(const Instruction *made, const Slot *slot, int64_t number, const int64_t *iterations) {
    if (made->place == NEXT)
        return slot->end;
    if (made->place == RANDOM) {
        uint64_t places = (uint64_t)((made->at[1] - made->at[0]) / made->at[2]) + 1;
        return made->at[0] + (int64_t)(random_number() % places) * made->at[2];
    }
    return stepped(made->at, made->steps, iterations) + made->by_task * number;
}

static void think(int64_t nanoseconds) {
    if (nanoseconds <= 0 || thinking == NONE)
        return;
    double until = now() + 1e-9 * (double)nanoseconds;
    if (thinking == SLEEP) {
        struct timespec left = {nanoseconds / 1000000000, nanoseconds % 1000000000};
        while (nanosleep(&left, &left) != 0 && errno == EINTR)
            ;
    }
    while (now() < until)
        ;
}

static void add(Times *times, int class, int64_t bytes, double seconds) {
    times->calls[class]++;
    times->bytes[class] += bytes;
    times->seconds[class] += seconds;
}

static void wait_for_all(Times *times) {
    double began = now();
    pthread_barrier_wait(&shared->barrier);
    if (times)
        add(times, IN_WAIT, 0, now() - began);
}

/* ---- tasks ---- */

static void do_call(const Instruction *made, Slot *slots, int64_t number, const int64_t *iterations, Times *times) {
    Slot *slot = &slots[stepped(made->slot, made->slot_steps, iterations)];
    double before = now();
    think(made->think);
    if (slot->descriptor < 0 && needs_descriptor(made->operation))
        open_slot(slot, CREATED | FOR_READING | FOR_WRITING);
    if (made->operation == OPEN)
        close_slot(slot);
    int64_t offset = place(made, slot, number, iterations);
    double began = now();
    int64_t bytes = call(slot, made, offset, slots);
    double ended = now();
    if (made->place == NEXT || made->operation == READ || made->operation == WRITE || made->operation == FREAD ||
        made->operation == FWRITE)
        slot->end = offset + bytes;
    times->seconds[IN_THINK] += began - before;
    add(times, CLASS_OF[made->operation], bytes, ended - began);
}

static void play(const Program *part, int task) {
    int64_t iterations[MAX_LOOPS] = {0}, left[MAX_LOOPS] = {0};
    size_t starts[MAX_LOOPS] = {0};
    int depth = 0;
    int64_t number = task - part->first;
    Times *times = &shared->times[task];
    Slot *slots = allocate((size_t)part->slots + 1, sizeof(Slot));
    for (int slot = 0; slot < part->slots; slot++) {
        const File *file = &files[part->base[slot] + part->step[slot] * number];
        slots[slot] = (Slot){.descriptor = -1, .name = file->name, .is_direct = file->is_direct};
    }
    for (size_t place = 0; part->instructions[place].operation != DONE; place++) {
        const Instruction *made = &part->instructions[place];
        if (made->operation == LOOP) {
            if (depth == MAX_LOOPS)
                die("the plan nests loops too deep");
            starts[depth] = place, left[depth] = made->times, iterations[depth] = 0, depth++;
        } else if (made->operation == END) {
            if (--left[depth - 1] > 0)
                iterations[depth - 1]++, place = starts[depth - 1];
            else
                depth--;
        } else if (made->operation == BARRIER)
            wait_for_all(times);
        else
            do_call(made, slots, number, iterations, times);
    }
    for (int slot = 0; slot < part->slots; slot++)
        close_slot(&slots[slot]);
}

static int run_task(int task, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return 1;
    random_state += (uint64_t)task << 32;
    wait_for_all(NULL);
    if (task == 0)
        shared->began = now();
    for (int part = 0; part < program_count; part++)
        if (task >= programs[part].first && task < programs[part].first + programs[part].count)
            play(&programs[part], task);
    wait_for_all(NULL);
    if (task == 0)
        shared->ended = now();
    return 0;
}

static void share(void) {
    pthread_barrierattr_t attributes;
    size_t bytes = sizeof(Shared) + (size_t)tasks * sizeof(Times);
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("cannot allocate shared memory: %s", strerror(errno));
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, (unsigned)tasks);
}

static void run_all(void) {
    pid_t parent = getpid(), *processes = allocate((size_t)tasks, sizeof(pid_t));
    fflush(stdout);
    for (int task = 0; task < tasks; task++) {
        processes[task] = fork();
        if (processes[task] == 0)
            exit(run_task(task, parent));
        if (processes[task] < 0)
            die("cannot start task %d: %s", task, strerror(errno)); /* the death of this process ends the others */
    }
    for (int ended = 0; ended < tasks; ended++) {
        int status;
        if (wait(&status) > 0 && status != 0)
            exit(WIFEXITED(status) ? 1 : (fprintf(stderr, "%s: a task was killed by signal %d\n", program, WTERMSIG(status)), 1));
    }
}

static void print_times(void) {
    static const char *const NAMES[] = {"read", "write", "sync", "metadata", "wait", "think"};
    for (int task = 0; task < tasks; task++) {
        const Times *times = &shared->times[task];
        printf("task %d", task);
        for (int class = 0; class < CLASSES; class++)
            printf(" %s %" PRId64 " %" PRId64 " %.6f", NAMES[class], times->calls[class], times->bytes[class],
                   times->seconds[class]);
        printf("\n");
    }
    printf("elapsed %.6f\n", shared->ended - shared->began);
    finish_output();
}

int main(int argc, char **argv) {
    program = "replay";
    if (argc != 4)
        die("usage: replay PLAN DIRECTORY spin|sleep|none");
    thinking = strcmp(argv[3], "spin") == 0 ? SPIN : strcmp(argv[3], "sleep") == 0 ? SLEEP : NONE;
    read_plan(argv[1]);
    directory = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        die("cannot open %s: %s", argv[2], strerror(errno));
    if (posix_memalign((void **)&buffer, ALIGNMENT, (size_t)buffer_bytes) != 0)
        die("cannot allocate %" PRId64 " bytes", buffer_bytes);
    for (int64_t word = 0; word < buffer_bytes / (int64_t)sizeof(uint64_t); word++)
        ((uint64_t *)buffer)[word] = random_number();
    for (int file = 0; file < file_count; file++)
        if (files[file].initial > 0)
            prepare(&files[file]);
    share();
    run_all();
    print_times();
    return 0;
}
