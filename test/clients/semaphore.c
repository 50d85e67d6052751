/* A File-Based Semaphore in C. Called like the shell clients, see worker.sh. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *witness, *me;

static void fail(const char *what)
{
	printf("error: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int acquire(const char *path)
{
	char info[256];
	int length = snprintf(info, sizeof info, "pid=%d\ntimestamp=%lld\ntag=%s\n", (int)getpid(), (long long)time(NULL), me);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0) {
		if (errno != EEXIST)
			fail("open");
		return 0;
	}
	if (write(fd, info, length) != length || fsync(fd) != 0 || close(fd) != 0)
		fail("write");
	return 1;
}

static FILE *seen(const char *name, const char *mode)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", witness, name);
	file = fopen(path, mode);
	if (file == NULL && errno != ENOENT)
		fail(path);
	return file;
}

static void record(const char *what)
{
	FILE *log = seen("log", "a");

	fprintf(log, "%s %s\n", what, me);
	fclose(log);
}

static void critical(void)
{
	int count = -1;
	FILE *file;

	record("enter");
	file = seen("count", "r");
	if (fscanf(file, "%d", &count) != 1)
		fail("count");
	fclose(file);
	usleep(10000);
	file = seen("count", "w");
	fprintf(file, "%d\n", count + 1);
	fclose(file);
	record("leave");
}

static int stopped(void)
{
	FILE *stop = seen("stop", "r");

	if (stop != NULL)
		fclose(stop);
	return stop != NULL;
}

int main(int argc, char **argv)
{
	char lock[4096];
	int done = 0, rounds;

	if (argc != 5)
		return 2;
	snprintf(lock, sizeof lock, "%s/lock", argv[1]);
	witness = argv[2], me = argv[3], rounds = atoi(argv[4]);
	while (done < rounds || !stopped()) {
		if (acquire(lock)) {
			critical();
			if (unlink(lock) != 0)
				fail("unlink");
			done++;
		}
		usleep(10000);
	}
	printf("finished after %d rounds\n", done);
	return 0;
}
