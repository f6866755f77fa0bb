/* An MPI program as applications are written: each rank reads its part of one file by MPI-IO, and adds it up.
 *
 *   mpi_reader FILE
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALL_BYTES = 1 << 20 };

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_File file;
    MPI_Offset bytes, part;
    unsigned char *buffer = malloc(CALL_BYTES);
    unsigned long long sum = 0, total = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_get_size(file, &bytes);
    part = bytes / ranks;
    for (MPI_Offset at = rank * part; at < (rank + 1) * part; at += CALL_BYTES) {
        MPI_File_read_at(file, at, buffer, CALL_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int place = 0; place < CALL_BYTES; place += 4096)
            sum += buffer[place];
    }
    MPI_File_close(&file);
    MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("%llu\n", total);
    return 0;
}
