/*
 * report.h - what a mount has done, as text.
 */
#ifndef DF_SERVER_REPORT_H
#define DF_SERVER_REPORT_H

/*
 * Writes to fd a line "mount MOUNTPOINT", then "NAME CALLS ERRORS BYTES" for each operation that
 * was called since the mount. A mount that counts nothing has its first line only.
 */
void df_report_write(int fd, int mount);

#endif
