package sandbox

import (
	"fmt"
	"strings"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Calls are the names of system calls. Those that an architecture lacks are left out.
type Calls string

const (
	// Runtime is what Go's runtime and the C library use for memory, threads, time and signals.
	Runtime Calls = `arch_prctl brk clock_getres clock_gettime clock_nanosleep exit exit_group futex getcpu getegid geteuid getgid getpid getpgrp getppid getpriority
		getrandom getrlimit getrusage gettid gettimeofday getuid madvise membarrier mincore mmap mprotect mremap munlock munmap nanosleep prctl prlimit64
		restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigtimedwait sched_getaffinity sched_getparam sched_getscheduler
		sched_setaffinity sched_yield set_robust_list set_tid_address sigaltstack sysinfo tgkill time timer_create timer_delete timer_settime times uname`
	// Files is what reading and writing files uses. Landlock says which ones.
	Files Calls = `access chdir close close_range copy_file_range dup dup2 dup3 epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 faccessat faccessat2
		fadvise64 fallocate fchmod fchmodat fchown fchownat fcntl fdatasync flock fstat fstatfs fsync ftruncate getcwd getdents64 ioctl lseek lstat mkdir mkdirat
		newfstatat open openat openat2 pipe pipe2 poll ppoll pread64 preadv pselect6 pwrite64 pwritev read readlink readlinkat readv rename renameat renameat2 rmdir
		select sendfile splice stat statfs statx symlinkat umask unlink unlinkat utimensat write writev`
	// Serve is what a server uses that accepts connections, and opens none.
	Serve Calls = `accept accept4 bind getpeername getsockname getsockopt listen setsockopt shutdown socket`
	// Connect is what a process uses besides that sends to others.
	Connect Calls = `connect recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto socketpair`
	// Devices is what DPDK's virtual devices use: shared memory, and timers and watches of descriptors.
	Devices Calls = `get_mempolicy inotify_add_watch inotify_init1 inotify_rm_watch mbind memfd_create mlock mlock2 msync sched_setscheduler set_mempolicy
		timerfd_create timerfd_gettime timerfd_settime`
)

// filter assembles a filter that allows calls. A call that isn't among them has the action otherwise. A thread may be made, a process may not: clone3 hides its
// flags, so it seems to be missing, and C libraries use clone in its place.
func filter(otherwise seccomp.Action, calls []Calls) (seccomp.Policy, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Policy{}, fmt.Errorf("seccomp: %w", err)
	}
	allowed := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
	for _, list := range calls {
		for _, name := range strings.Fields(string(list)) {
			if _, known := info.SyscallNames[name]; known {
				allowed.Names = append(allowed.Names, name)
			}
		}
	}
	return seccomp.Policy{DefaultAction: otherwise, Syscalls: []seccomp.SyscallGroup{
		allowed,
		{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
		// The last one, as conditions overwrite the register that later groups compare.
		{Action: seccomp.ActionAllow, NamesWithCondtions: []seccomp.NameWithConditions{
			{Name: "clone", Conditions: seccomp.ArgumentConditions{{Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}}},
		}},
	}}, nil
}

// Supervised assembles a filter that asks a supervisor (seccomp_unotify(2)) about each call that isn't among those listed.
func Supervised(calls ...Calls) ([]bpf.RawInstruction, error) {
	policy, err := filter(seccomp.ActionTrap, calls) // the library does not know SECCOMP_RET_USER_NOTIF as the default
	if err != nil {
		return nil, err
	}
	program, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	for i, instruction := range program {
		if instruction == (bpf.RetConstant{Val: uint32(seccomp.ActionTrap)}) {
			program[i] = bpf.RetConstant{Val: uint32(seccomp.ActionUserNotify)}
		}
	}
	return bpf.Assemble(program)
}

// Name is the name of a system call by its number.
func Name(number int) string {
	if info, err := arch.GetInfo(""); err == nil && info.SyscallNumbers[number] != "" {
		return info.SyscallNumbers[number]
	}
	return fmt.Sprintf("system call %d", number)
}
