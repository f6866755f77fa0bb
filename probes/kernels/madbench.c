/* The kernel of MADbench: one phase of one task on its part of out-of-core matrices.
 *
 *   madbench S|W|C|I|R FILE own|shared NO_PIX NO_BIN TASK TASKS BUSY_EXPONENT READ_LOCK WRITE_LOCK
 *
 * After the I/O mode of MADbench2 (J. Borrill, L. Oliker, J. Shalf, H. Shan, SC'07). NO_BIN matrices of
 * NO_PIX x NO_PIX doubles are split by rows over TASKS tasks; this is number TASK. FILE has the task's parts
 * of all matrices one after another, or if it is shared (and exists) all matrices; one part at a time is in memory.
 *
 *   S  generates and writes the matrices
 *   W  reads each, computes another matrix from it, and writes that in its place
 *   C  reads each
 *   I  and R of MADbench 1 read what S wrote
 *
 * Compiled by an MPI compiler with -DMADBENCH_MPI, it uses MPI-IO, and TASK and TASKS are its rank and their number.
 *
 * For every matrix all tasks together do NO_PIX ^ (2 BUSY_EXPONENT) floating-point operations of busy work.
 * Every value that is read is compared with the written one. Of the tasks with the same lock file, one at a
 * time reads (writes). At the end of S and W the data are on the storage device, and the system is advised
 * to drop them from memory, so that the next phase reads from the device.
 *
 * Prints "phase P task T read B bytes in R write B bytes in W wait Q busy U seconds S"; busy is the time to
 * generate and compare matrices, and busy work. An error ends the program with a message and status 1.
 */
#include "checked.h"
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#ifdef MADBENCH_MPI
#include <mpi.h>
typedef MPI_File Opened;
#else
typedef int Opened;
#endif

enum { BLOCK = 256 };

struct part {
    const char *path;
    Opened file;
    int read_lock, write_lock, is_shared;
    long no_pix, no_bin, first_row, rows, tasks;
    double busy_exponent, *values;
    double read_bytes, read_seconds, write_bytes, write_seconds, wait_seconds;
};

/* Return an element of a matrix of S: a multiple of 2^-53 in [0, 1), a hash of its index (splitmix64,
 * Steele, Lea and Flood 2014), so that a misplaced value is detected. */
static double s_element(uint64_t index) {
    uint64_t z = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Return the element that W computes from one of S; exact. */
static double w_element(double value) { return 0.5 - value; }

static size_t elements(const struct part *part) { return (size_t)(part->rows * part->no_pix); }

static uint64_t first_index(const struct part *part, long bin) {
    return (uint64_t)(bin * part->no_pix + part->first_row) * (uint64_t)part->no_pix;
}

/* Return where the part of a matrix is in the file. */
static off_t place(const struct part *part, long bin) {
    off_t own = (off_t)(elements(part) * sizeof(double)) * bin;
    return part->is_shared ? (off_t)(first_index(part, bin) * sizeof(double)) : own;
}

static void generate(struct part *part, long bin) {
    uint64_t index = first_index(part, bin);
    for (size_t i = 0; i < elements(part); i++)
        part->values[i] = s_element(index + i);
}

static void transform_values(struct part *part) {
    for (size_t i = 0; i < elements(part); i++)
        part->values[i] = w_element(part->values[i]);
}

static void compare(const struct part *part, long bin, int after_w) {
    uint64_t index = first_index(part, bin);
    for (size_t i = 0; i < elements(part); i++) {
        double written = after_w ? w_element(s_element(index + i)) : s_element(index + i);
        if (part->values[i] != written)
            die("%s: row %ld, column %ld of matrix %ld was written as %.17g and read as %.17g", part->path,
                part->first_row + (long)i / part->no_pix, (long)i % part->no_pix, bin, written,
                part->values[i]);
    }
}

static void busy_work(const struct part *part) {
    volatile double kept = 0;
    double block[BLOCK], flops = pow((double)part->no_pix, 2 * part->busy_exponent) / (double)part->tasks;
    for (int i = 0; i < BLOCK; i++)
        block[i] = i;
    for (double done = 0; done < flops; done += 2 * BLOCK)
        for (int i = 0; i < BLOCK; i++)
            block[i] = 0.5 * block[i] + 1.5;
    for (int i = 0; i < BLOCK; i++)
        kept += block[i];
}

static void set_lock(int file, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
    while (fcntl(file, F_SETLKW, &lock) != 0)
        if (errno != EINTR)
            die("cannot lock: %s", strerror(errno));
}

/* Wait for the lock; return the time of its acquisition. */
static double acquire(struct part *part, int lock) {
    double began = now();
    set_lock(lock, F_WRLCK);
    part->wait_seconds += now() - began;
    return now();
}

/* ---- the file ---- */

#ifdef MADBENCH_MPI
static void succeed(int error, const char *what, const char *path) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, text, &length);
    die("cannot %s %s: %s", what, path, text);
}

static Opened open_file(const struct part *part, char phase) {
    int mode = phase == 'S' ? MPI_MODE_WRONLY | MPI_MODE_CREATE : phase == 'W' ? MPI_MODE_RDWR : MPI_MODE_RDONLY;
    Opened file;
    succeed(MPI_File_open(part->is_shared ? MPI_COMM_WORLD : MPI_COMM_SELF, part->path, mode, MPI_INFO_NULL, &file),
            "open", part->path);
    return file;
}

static void transfer(struct part *part, int is_write, size_t bytes, off_t offset) {
    MPI_Status status;
    int moved;
    if (part->no_pix > INT_MAX / part->rows)
        die("%zu bytes are too many for a call of MPI-IO", bytes);
    int count = (int)elements(part);
    int error = is_write ? MPI_File_write_at(part->file, offset, part->values, count, MPI_DOUBLE, &status)
                         : MPI_File_read_at(part->file, offset, part->values, count, MPI_DOUBLE, &status);
    succeed(error, is_write ? "write" : "read", part->path);
    MPI_Get_count(&status, MPI_DOUBLE, &moved);
    if (moved != count)
        die("cannot %s %s: it ends too early", is_write ? "write" : "read", part->path);
}

static void flush(struct part *part) { succeed(MPI_File_sync(part->file), "write", part->path); }
static void close_file(struct part *part) { succeed(MPI_File_close(&part->file), "write", part->path); }
#else
static Opened open_file(const struct part *part, char phase) {
    int writing = part->is_shared ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC;
    return open_or_die(part->path, phase == 'S' ? writing : phase == 'W' ? O_RDWR : O_RDONLY);
}

static void transfer(struct part *part, int is_write, size_t bytes, off_t offset) {
    if (is_write)
        write_at(part->file, part->path, part->values, bytes, offset);
    else
        read_at(part->file, part->path, part->values, bytes, offset);
}

static void flush(struct part *part) {
    if (fsync(part->file) != 0)
        die("cannot write %s: %s", part->path, strerror(errno));
}
static void close_file(struct part *part) { close_or_die(part->file, part->path); }
#endif

/* Advise the system to drop the file from memory, which a file system may ignore. */
static void drop(const struct part *part) {
#ifdef POSIX_FADV_DONTNEED
    int file = open_or_die(part->path, O_RDONLY);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
#else
    (void)part;
#endif
}

static void read_matrix(struct part *part, long bin) {
    size_t bytes = elements(part) * sizeof(double);
    double began = acquire(part, part->read_lock);
    transfer(part, 0, bytes, place(part, bin));
    part->read_seconds += now() - began;
    set_lock(part->read_lock, F_UNLCK);
    part->read_bytes += (double)bytes;
}

static void write_matrix(struct part *part, long bin) {
    size_t bytes = elements(part) * sizeof(double);
    double began = acquire(part, part->write_lock);
    transfer(part, 1, bytes, place(part, bin));
    part->write_seconds += now() - began;
    set_lock(part->write_lock, F_UNLCK);
    part->write_bytes += (double)bytes;
}

static void flush_file(struct part *part) {
    double began = now();
    flush(part);
    part->write_seconds += now() - began;
    drop(part);
}

static void do_phase(struct part *part, char phase) {
    for (long bin = 0; bin < part->no_bin; bin++) {
        if (phase == 'S')
            generate(part, bin);
        else {
            read_matrix(part, bin);
            compare(part, bin, phase == 'C');
        }
        busy_work(part);
        if (phase == 'W')
            transform_values(part);
        if (phase == 'S' || phase == 'W')
            write_matrix(part, bin);
    }
    if (phase == 'S' || phase == 'W')
        flush_file(part);
}

static void print_times(const struct part *part, char phase, long task, double seconds) {
    double elsewhere = part->read_seconds + part->write_seconds + part->wait_seconds;
    printf("phase %c task %ld read %.0f bytes in %.6f write %.0f bytes in %.6f", phase, task, part->read_bytes,
           part->read_seconds, part->write_bytes, part->write_seconds);
    printf(" wait %.6f busy %.6f seconds %.6f\n", part->wait_seconds, seconds - elsewhere, seconds);
    finish_output();
}

int main(int argc, char **argv) {
    double began = now();
    program = "madbench";
#ifdef MADBENCH_MPI
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    began = now();
#endif
    if (argc != 11 || strlen(argv[1]) != 1 || strchr("SWCIR", *argv[1]) == NULL)
        die("usage: madbench S|W|C|I|R FILE own|shared NO_PIX NO_BIN TASK TASKS BUSY_EXPONENT READ_LOCK WRITE_LOCK");
    char phase = *argv[1];
    struct part part = {.path = argv[2], .is_shared = strcmp(argv[3], "shared") == 0};
    part.no_pix = whole("NO_PIX", argv[4], 1, 1 << 20);
    part.no_bin = whole("NO_BIN", argv[5], 1, 1 << 20);
    part.tasks = whole("TASKS", argv[7], 1, part.no_pix);
    long task = whole("TASK", argv[6], 0, part.tasks - 1);
#ifdef MADBENCH_MPI
    if (ranks != part.tasks)
        die("%d ranks instead of %ld tasks", ranks, part.tasks);
    task = rank;
#endif
    part.busy_exponent = number("BUSY_EXPONENT", argv[8], 0, 2);
    part.first_row = part.no_pix * task / part.tasks;
    part.rows = part.no_pix * (task + 1) / part.tasks - part.first_row;
    part.values = allocate(elements(&part), sizeof(double));
    part.read_lock = open_or_die(argv[9], O_RDWR | O_CREAT);
    part.write_lock = open_or_die(argv[10], O_RDWR | O_CREAT);
    part.file = open_file(&part, phase);
    do_phase(&part, phase);
    close_file(&part);
    print_times(&part, phase, task, now() - began);
#ifdef MADBENCH_MPI
    MPI_Finalize();
#endif
    return 0;
}
