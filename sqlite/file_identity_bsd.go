//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package sqlite

// fileIdentity returns the identity of the file to which the path leads, without opening the file; see resolvePath.
func fileIdentity(path string) (fileID, error) { return fileIdentityByStat(path) }
