/* SPDX-License-Identifier: MIT */
/*
 * A program that is no part of the tree: all it knows of iron is what was installed.
 * scripts/check-install builds it by pkg-config, shared and static, and by CMake's find_package.
 */
#include <iron/iron.h>
#include <stdio.h>

int main(void) {
    printf("iron %s\n", iron_version());
    return 0;
}
