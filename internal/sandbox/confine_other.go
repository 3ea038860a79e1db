//go:build !linux

package sandbox

// Confine does nothing: only Linux has seccomp and Landlock.
func Confine(Paths, bool) error { return nil }

// KeepFromCores does nothing on this system.
func KeepFromCores() error { return nil }
