/* The kernel of External-memory BFS: breadth-first search of a graph that lies on disk.
 *
 *   em_bfs generate DIRECTORY DIMENSION RECORD_BYTES SEED MEMORY_BYTES
 *   em_bfs traverse DIRECTORY DIMENSION RECORD_BYTES SEED MEMORY_BYTES
 *
 * The graph is a hypercube: 2^DIMENSION vertices, each with DIMENSION neighbours. Vertices are renamed by a
 * random permutation that SEED chooses, so the neighbours of a vertex lie anywhere in the file. `generate`
 * writes a record of RECORD_BYTES for each vertex, in the order of their names: the names of its neighbours,
 * eight bytes each, then random content. `traverse` knows only this file and the degree: it is the algorithm of K. Munagala and A. Ranade, I/O-complexity of graph algorithms (SODA 1999),
 * for undirected graphs. The next level are the neighbours of this level without this level and the one
 * before. Adjacency lists are read as blocks; neighbours are sorted in runs of MEMORY_BYTES, which
 * are merged from disk. Then the answer is checked: level k has DIMENSION over k vertices, and these have k
 * bits that differ from the root, before they were renamed.
 *
 * Direct I/O is used where the file system allows it (printed as "direct 1"), otherwise the page cache is told
 * to drop the files first. Prints "NAME OPERATIONS BYTES SECONDS" for `generate`; for `traverse` such a line
 * for `adjacency`, `sort_write`, `sort_read` and, with vertices and levels instead, `traverse`.
 */
#define _GNU_SOURCE
#include "checked.h"

#include <inttypes.h>
#include <stdint.h>

enum { BLOCK = 4096, STREAM = 65536, NAME_BYTES = 4096, MOST_RUNS = 1024 };

typedef uint64_t Vertex;

typedef struct {
    const char *directory;
    int dimension;
    uint64_t seed, vertices, record_bytes;
    size_t memory_bytes;
} Graph;

typedef struct {
    uint64_t operations, bytes;
    double seconds;
} Tally;

static int is_direct = 1;

static void print(const char *name, Tally tally) {
    printf("%s %" PRIu64 " %" PRIu64 " %.9f\n", name, tally.operations, tally.bytes, tally.seconds);
}

static void *blocks(size_t bytes) {
    void *memory = NULL;
    int problem = posix_memalign(&memory, BLOCK, bytes);
    if (problem != 0)
        die("cannot allocate %zu bytes: %s", bytes, strerror(problem));
    return memory;
}

/* Renames of vertices: rounds of a multiplication by an odd number and a shift, each of which can be undone. */

static uint64_t inverse(uint64_t odd) { /* Newton's method: each step doubles the correct bits */
    uint64_t result = odd;
    for (int step = 0; step < 6; step++)
        result *= 2 - odd * result;
    return result;
}

enum { ROUNDS = 4 };

/* The last steps of splitmix64: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators. */
static uint64_t mixed(uint64_t state) {
    state = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94D049BB133111EB);
    return state ^ (state >> 31);
}

static uint64_t factor(const Graph *graph, int turn) {
    return mixed(graph->seed + (uint64_t)(turn + 1) * UINT64_C(0x9E3779B97F4A7C15)) | 1;
}

static int shift_of(const Graph *graph) {
    return (graph->dimension + 1) / 2; /* at least half of the bits: the shift undoes itself */
}

static Vertex renamed(const Graph *graph, Vertex vertex) {
    for (int turn = 0; turn < ROUNDS; turn++) {
        vertex = (vertex * factor(graph, turn)) & (graph->vertices - 1);
        vertex ^= vertex >> shift_of(graph);
    }
    return vertex;
}

static Vertex original(const Graph *graph, Vertex vertex) {
    for (int turn = ROUNDS - 1; turn >= 0; turn--) {
        vertex ^= vertex >> shift_of(graph);
        vertex = (vertex * inverse(factor(graph, turn))) & (graph->vertices - 1);
    }
    return vertex;
}

/* Streams of vertices: a file that is written once from its start, and read from any run of it. */

typedef struct {
    char path[NAME_BYTES];
    int file;
    Vertex *buffer;   /* STREAM bytes */
    uint64_t written; /* vertices in the file and the buffer */
    Tally *tally;
} Writer;

typedef struct {
    const char *path;
    int file;
    Vertex *buffer;
    size_t at, filled;   /* vertices in the buffer */
    uint64_t next, last; /* vertices of the file: the next to be read into the buffer, and the end */
    Tally *tally;
} Reader;

static int open_data(const char *path, int flags) {
    int file = is_direct ? open(path, flags | O_DIRECT, 0666) : -1;
    if (file >= 0)
        return file;
    file = open_or_die(path, flags);
    is_direct = 0;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    return file;
}

static void path_of(const Graph *graph, const char *name, char *path) {
    if (snprintf(path, NAME_BYTES, "%s/%s", graph->directory, name) >= NAME_BYTES)
        die("the path of %s is too long", graph->directory);
}

static void create(Writer *writer, const Graph *graph, const char *name, Tally *tally) {
    path_of(graph, name, writer->path);
    writer->file = open_data(writer->path, O_WRONLY | O_CREAT | O_TRUNC);
    writer->buffer = blocks(STREAM);
    writer->written = 0;
    writer->tally = tally;
}

/* Write the buffer: whole, or at the end of the file and of a run, up to a multiple of the block. */
static void flush_buffer(Writer *writer, uint64_t from, size_t bytes) {
    size_t padded = (bytes + BLOCK - 1) / BLOCK * BLOCK;
    memset((char *)writer->buffer + bytes, 0, padded - bytes);
    double began = now();
    write_at(writer->file, writer->path, writer->buffer, padded, (off_t)from);
    writer->tally->seconds += now() - began;
    writer->tally->operations++;
    writer->tally->bytes += padded;
}

static void put(Writer *writer, Vertex vertex) {
    size_t place = writer->written * sizeof(Vertex) % STREAM / sizeof(Vertex);
    writer->buffer[place] = vertex;
    writer->written++;
    if ((place + 1) * sizeof(Vertex) == STREAM)
        flush_buffer(writer, writer->written * sizeof(Vertex) - STREAM, STREAM);
}

static void end_writing(Writer *writer) {
    size_t rest = writer->written * sizeof(Vertex) % STREAM;
    if (rest > 0)
        flush_buffer(writer, writer->written * sizeof(Vertex) - rest, rest);
    double began = now();
    if (fsync(writer->file) != 0 && errno != EINVAL)
        die("cannot flush %s: %s", writer->path, strerror(errno));
    writer->tally->seconds += now() - began;
    close_or_die(writer->file, writer->path);
    free(writer->buffer);
}

static void start_reading(Reader *reader, const char *path, uint64_t first, uint64_t last, Tally *tally) {
    *reader = (Reader){.path = path, .next = first, .last = last, .tally = tally};
    reader->file = open_data(path, O_RDONLY);
    reader->buffer = blocks(STREAM);
}

/* Fill the buffer from a boundary of STREAM bytes. Return whether a vertex is left. */
static int fill(Reader *reader) {
    if (reader->at < reader->filled)
        return 1;
    if (reader->next >= reader->last)
        return 0;
    uint64_t in_buffer = STREAM / sizeof(Vertex), start = reader->next / in_buffer * in_buffer;
    uint64_t end = start + in_buffer < reader->last ? start + in_buffer : reader->last;
    size_t bytes = ((end - start) * sizeof(Vertex) + BLOCK - 1) / BLOCK * BLOCK;
    double began = now();
    read_at(reader->file, reader->path, reader->buffer, bytes, (off_t)(start * sizeof(Vertex)));
    reader->tally->seconds += now() - began;
    reader->tally->operations++;
    reader->tally->bytes += bytes;
    reader->at = reader->next - start;
    reader->filled = end - start;
    reader->next = end;
    return 1;
}

static Vertex head(const Reader *reader) { return reader->buffer[reader->at]; }

static void end_reading(Reader *reader) {
    close_or_die(reader->file, reader->path);
    free(reader->buffer);
}

/* Generate. */

static int generate(const Graph *graph) {
    Writer writer;
    Tally tally = {0, 0, 0.0};
    double began = now();
    create(&writer, graph, "graph", &tally);
    for (Vertex name = 0; name < graph->vertices; name++) {
        Vertex vertex = original(graph, name);
        for (int bit = 0; bit < graph->dimension; bit++)
            put(&writer, renamed(graph, vertex ^ (UINT64_C(1) << bit)));
        for (uint64_t word = (uint64_t)graph->dimension; word < graph->record_bytes / sizeof(Vertex); word++)
            put(&writer, mixed(writer.written));
    }
    end_writing(&writer);
    printf("direct %d\n", is_direct);
    print("generate", (Tally){tally.operations, tally.bytes, now() - began});
    finish_output();
    return 0;
}

/* Traverse. */

typedef struct {
    const Graph *graph;
    int file; /* adjacency lists */
    char path[NAME_BYTES];
    unsigned char *block;
    uint64_t first_block, held_blocks; /* of `block` */
    Tally adjacency, sort_write, sort_read;
} Search;

typedef struct {
    uint64_t ends[MOST_RUNS]; /* vertices */
    int count;
} Runs;

static int ascending(const void *left, const void *right) {
    Vertex a = *(const Vertex *)left, b = *(const Vertex *)right;
    return (a > b) - (a < b);
}

/* Return the list of a vertex: one block, or the few over which it extends. */
static const Vertex *neighbours(Search *search, Vertex vertex) {
    uint64_t list_bytes = (uint64_t)search->graph->dimension * sizeof(Vertex);
    uint64_t from = vertex * search->graph->record_bytes;
    uint64_t first = from / BLOCK, count = (from + list_bytes - 1) / BLOCK - first + 1;
    if (vertex >= search->graph->vertices)
        die("%s is damaged: there is no vertex %" PRIu64, search->path, vertex);
    if (first < search->first_block || first + count > search->first_block + search->held_blocks) {
        double began = now();
        read_at(search->file, search->path, search->block, count * BLOCK, (off_t)(first * BLOCK));
        search->adjacency.seconds += now() - began;
        search->adjacency.operations++;
        search->adjacency.bytes += count * BLOCK;
        search->first_block = first, search->held_blocks = count;
    }
    return (const Vertex *)(const void *)(search->block + (from - search->first_block * BLOCK));
}

static void end_run(Writer *writer, Runs *runs, Vertex *run, size_t count) {
    if (count == 0)
        return;
    if (runs->count == MOST_RUNS)
        die("MEMORY_BYTES is too small: a level has more than %d runs", MOST_RUNS);
    qsort(run, count, sizeof *run, ascending);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || run[i] != run[i - 1])
            put(writer, run[i]);
    runs->ends[runs->count++] = writer->written;
}

/* Write the neighbours of a level in sorted runs. */
static void expand(Search *search, const char *level_path, uint64_t level_size, Writer *writer, Runs *runs) {
    size_t most = search->graph->memory_bytes / sizeof(Vertex), count = 0;
    Vertex *run = allocate(most, sizeof *run);
    Reader level;
    runs->count = 0;
    start_reading(&level, level_path, 0, level_size, &search->sort_read);
    for (; fill(&level); level.at++) {
        const Vertex *list = neighbours(search, head(&level));
        for (int i = 0; i < search->graph->dimension; i++) {
            if (count == most)
                end_run(writer, runs, run, count), count = 0;
            run[count++] = list[i];
        }
    }
    end_run(writer, runs, run, count);
    end_reading(&level);
    free(run);
}

/* Return whether the sorted stream has the vertex; skip what is smaller. */
static int has(Reader *reader, Vertex vertex) {
    while (fill(reader) && head(reader) < vertex)
        reader->at++;
    return fill(reader) && head(reader) == vertex;
}

/* Merge the runs into the next level, without the vertices of the two levels before. */
static void merge(Search *search, const char *runs_path, const Runs *runs, Reader *before, Writer *next) {
    Reader *inputs = allocate((size_t)runs->count + 1, sizeof *inputs);
    for (int i = 0; i < runs->count; i++)
        start_reading(&inputs[i], runs_path, i == 0 ? 0 : runs->ends[i - 1], runs->ends[i], &search->sort_read);
    for (;;) {
        Reader *smallest = NULL;
        for (int i = 0; i < runs->count; i++)
            if (fill(&inputs[i]) && (smallest == NULL || head(&inputs[i]) < head(smallest)))
                smallest = &inputs[i];
        if (smallest == NULL)
            break;
        Vertex vertex = head(smallest);
        for (int i = 0; i < runs->count; i++)
            if (fill(&inputs[i]) && head(&inputs[i]) == vertex)
                inputs[i].at++;
        if (!has(&before[0], vertex) && !has(&before[1], vertex))
            put(next, vertex);
    }
    for (int i = 0; i < runs->count; i++)
        end_reading(&inputs[i]);
    free(inputs);
}

static void check_level(Search *search, const char *path, uint64_t size, int level, Vertex root) {
    const Graph *graph = search->graph;
    double expected = 1.0;
    for (int i = 0; i < level; i++)
        expected = expected * (graph->dimension - i) / (i + 1);
    if ((double)size != floor(expected + 0.5))
        die("wrong answer: level %d has %" PRIu64 " vertices instead of %.0f", level, size, expected);
    Tally unused = {0, 0, 0.0};
    Reader reader;
    start_reading(&reader, path, 0, size, &unused);
    for (; fill(&reader); reader.at++)
        if (__builtin_popcountll(original(graph, head(&reader)) ^ root) != level)
            die("wrong answer: vertex %" PRIu64 " is not on level %d", head(&reader), level);
    end_reading(&reader);
}

static uint64_t next_level(Search *search, char paths[3][NAME_BYTES], const uint64_t *sizes, int level) {
    const char *names[3] = {"level.0", "level.1", "level.2"};
    Writer run_writer, writer;
    Runs runs;
    create(&run_writer, search->graph, "runs", &search->sort_write);
    expand(search, paths[level % 3], sizes[level % 3], &run_writer, &runs);
    end_writing(&run_writer);
    Reader before[2];
    start_reading(&before[0], paths[level % 3], 0, sizes[level % 3], &search->sort_read);
    start_reading(&before[1], paths[(level + 2) % 3], 0, sizes[(level + 2) % 3], &search->sort_read);
    create(&writer, search->graph, names[(level + 1) % 3], &search->sort_write);
    merge(search, run_writer.path, &runs, before, &writer);
    end_writing(&writer);
    end_reading(&before[0]);
    end_reading(&before[1]);
    return writer.written;
}

static void prepare_levels(Search *search, char paths[3][NAME_BYTES], Vertex root) {
    const char *names[3] = {"level.0", "level.1", "level.2"};
    for (int i = 0; i < 3; i++) {
        Writer writer;
        create(&writer, search->graph, names[i], &search->sort_write);
        memcpy(paths[i], writer.path, NAME_BYTES);
        if (i == 0)
            put(&writer, renamed(search->graph, root));
        end_writing(&writer);
    }
}

static int traverse(const Graph *graph) {
    Search search = {.graph = graph};
    char paths[3][NAME_BYTES];
    uint64_t sizes[3] = {1, 0, 0}, visited = 0;
    Vertex root = (graph->vertices - 1) & UINT64_C(0x5555555555555555);
    path_of(graph, "graph", search.path);
    search.file = open_data(search.path, O_RDONLY);
    search.block = blocks(2 * BLOCK + (size_t)graph->dimension * sizeof(Vertex) / BLOCK * BLOCK);
    double began = now(), checking = 0.0;
    int level = 0;
    prepare_levels(&search, paths, root);
    for (; sizes[level % 3] > 0; level++) {
        double checks = now();
        check_level(&search, paths[level % 3], sizes[level % 3], level, root);
        checking += now() - checks;
        visited += sizes[level % 3];
        sizes[(level + 1) % 3] = next_level(&search, paths, sizes, level);
    }
    if (level != graph->dimension + 1)
        die("wrong answer: %d levels instead of %d", level, graph->dimension + 1);
    double seconds = now() - began - checking;
    printf("direct %d\n", is_direct);
    print("adjacency", search.adjacency);
    print("sort_write", search.sort_write);
    print("sort_read", search.sort_read);
    print("traverse", (Tally){visited, (uint64_t)level, seconds});
    free(search.block);
    close_or_die(search.file, search.path);
    finish_output();
    return 0;
}

int main(int argc, char **argv) {
    program = "em_bfs";
    if (argc != 7)
        die("usage: em_bfs generate|traverse DIRECTORY DIMENSION RECORD_BYTES SEED MEMORY_BYTES");
    Graph graph = {.directory = argv[2]};
    graph.dimension = (int)whole("DIMENSION", argv[3], 2, 32);
    graph.record_bytes = (uint64_t)whole("RECORD_BYTES", argv[4], graph.dimension * (long)sizeof(Vertex), 1 << 30);
    graph.seed = (uint64_t)whole("SEED", argv[5], 0, 2147483647);
    graph.memory_bytes = (size_t)whole("MEMORY_BYTES", argv[6], BLOCK, 1L << 40);
    if (graph.record_bytes % sizeof(Vertex) != 0)
        die("RECORD_BYTES: %s is not a multiple of %zu", argv[4], sizeof(Vertex));
    graph.vertices = UINT64_C(1) << graph.dimension;
    if (strcmp(argv[1], "generate") == 0)
        return generate(&graph);
    if (strcmp(argv[1], "traverse") == 0)
        return traverse(&graph);
    die("unknown command: %s", argv[1]);
    return 1;
}
