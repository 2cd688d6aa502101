//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package sqlite

// fileIdentity looks where the path leads, without opening the file: see resolvePath.
func fileIdentity(path string) (fileID, error) { return fileIdentityByStat(path) }
