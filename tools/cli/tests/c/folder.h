#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

/* Removes what is in a folder, and the folder too if `all`. */
static void empty(const char *folder, int all) {
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%.255s", folder, entry->d_name);
        unlink(path);
    }
    if (entries)
        closedir(entries);
    if (entries && all)
        rmdir(folder);
}
