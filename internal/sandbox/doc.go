// Package sandbox confines a process once it has opened what it needs: seccomp limits its system calls to a list, and Landlock limits the files that it opens.
// The lists were observed: Go's runtime and C library, DPDK's threads and its virtual devices, on amd64 and Linux up to 6.18.
package sandbox

// Paths are what a process may open: files, or whole directories with what is in them. Those that don't exist are left out.
type Paths struct{ Read, Write []string }
