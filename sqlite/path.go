package sqlite

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// resolvePath returns the absolute path without symbolic links, so that every process uses the same folder of worker
// locks. It checks the path without opening the file: closing any descriptor of a file releases the locks that this
// process holds on it through SQLite.
func resolvePath(path string) (string, error) {
	refuse := func(problem, fix string, err error) (string, error) {
		return "", &OpenError{Path: path, Problem: problem, Fix: fix, Err: err}
	}
	switch {
	case strings.HasPrefix(path, "postgres://"), strings.HasPrefix(path, "postgresql://"):
		path, _, _ = strings.Cut(path, "//") // the text after // may contain a password
		path += "//..."
		return refuse("it is the URL of a PostgreSQL database, and not the path of a file", "use postgres.Open for this database", nil)
	case path == "":
		return refuse("the path is empty", "name a file, for example durable.db", nil)
	case path == ":memory:", strings.HasPrefix(path, "file:"):
		return refuse("it is not the path of a file",
			"a durable store must survive its process: name a file by its plain path; a test takes filepath.Join(t.TempDir(), \"durable.db\")", nil)
	case strings.ContainsRune(path, 0):
		return refuse("the path holds a NUL byte", "name a file without one", nil)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return refuse("the path cannot be made absolute", "give the absolute path", err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if target, err := os.Readlink(abs); err == nil { // SQLite creates the file to which the link leads
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(abs), target)
			}
			return resolvePath(target)
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(abs))
		if err != nil {
			return refuse("its folder cannot be used", "create the folder first", err)
		}
		return filepath.Join(folder, filepath.Base(abs)), nil
	case err != nil:
		return refuse("the file cannot be examined", "check the path and the permissions on its folders", err)
	case info.IsDir():
		return refuse("it is a folder", "name a file in it, for example durable.db", nil)
	case !info.Mode().IsRegular():
		return refuse("it is not a regular file", "name a regular file on a local disk", nil)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return refuse("the file cannot be examined", "check the path and the permissions on its folders", err)
	}
	return resolved, nil
}

// dataSourceName returns the data source name of an absolute path. It is a URI, in which characters such as "?", "#" and "%" are
// escaped.
func dataSourceName(path string, settings url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}
	return u.String()
}

// writerSettings returns the settings of the connection that writes. The driver never waits for a lock; retryBusy does.
func writerSettings(o openOptions) url.Values {
	level := "FULL"
	if o.synchronous == Normal {
		level = "NORMAL"
	}
	return url.Values{
		"_txlock":       {"immediate"},
		"_busy_timeout": {"0"},
		"_synchronous":  {level},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
		"_pragma":       {"cache_size(-16384)", "temp_store(memory)", "wal_autocheckpoint(4000)"},
	}
}

// readerSettings returns the settings of the connections that read. In WAL mode a reader waits only while another
// process recovers the log.
func readerSettings(o openOptions) url.Values {
	return url.Values{
		"_query_only":   {"1"},
		"_busy_timeout": {strconv.FormatInt(int64(o.busyTimeout/time.Millisecond), 10)},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
	}
}
