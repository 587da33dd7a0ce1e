/* SPDX-License-Identifier: MIT */
/*
 * progress.c: see progress.h. The kernel's own tcp.h is the one that has the counters of bytes.
 */
#include "server/progress.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

iron__progress iron__progress_of(int fd) {
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    iron__progress p = {0};

    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0) {
        p.acked = info.tcpi_bytes_acked;
        p.received = info.tcpi_bytes_received;
    }
    if (ioctl(fd, SIOCOUTQ, &p.unsent) != 0)
        p.unsent = 0;
    return p;
}
