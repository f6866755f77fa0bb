/* What two processes can get of this machine at best: arithmetic in the processor's own cache. */
#include <stdio.h>

enum { WORDS = 1024, ROUNDS = 11000000 };

int main(void) {
    static float sums[WORDS], values[WORDS], others[WORDS];
    for (int i = 0; i < WORDS; i++) {
        values[i] = (float)i;
        others[i] = 1;
    }
    for (long round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WORDS; i++)
            sums[i] = sums[i] * 0.5f + values[i] * (float)(round & 7) + others[i];
    printf("%f\n", (double)sums[5]);
    return 0;
}
