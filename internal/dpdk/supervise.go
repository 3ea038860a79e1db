//go:build !nodpdk

package dpdk

/*
#include "supervise.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	classic "golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Supervise puts all threads of the process, those of DPDK too, under a filter of system calls whose default is to ask a supervisor. A call that the filter doesn't
// allow fails with EPERM, or goes on with audit; report gets its number. It can be called once, and needs Linux 5.7.
func Supervise(filter []classic.RawInstruction, audit bool, report func(call int)) error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	calls := os.NewFile(uintptr(ends[0]), "calls")
	program := make([]C.struct_sock_filter, len(filter))
	for i, f := range filter {
		program[i] = C.struct_sock_filter{code: C.ushort(f.Op), jt: C.uchar(f.Jt), jf: C.uchar(f.Jf), k: C.uint(f.K)}
	}
	audited := C.int(0)
	if audit {
		audited = 1
	}
	if ret := C.cnp_supervise(&program[0], C.ushort(len(program)), audited, C.int(ends[1])); ret != 0 {
		_, _ = calls.Close(), unix.Close(ends[1])
		return fmt.Errorf("seccomp: %w; expected Linux 5.7 or later, and no other supervisor of this process", unix.Errno(-ret))
	}
	go func() {
		var number [unsafe.Sizeof(C.int(0))]byte
		for {
			if _, err := calls.Read(number[:]); err != nil {
				return
			}
			report(int(binary.NativeEndian.Uint32(number[:])))
		}
	}()
	return nil
}
