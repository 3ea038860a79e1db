//go:build !purego && !race

#include "textflag.h"

// func Store64(word *atomic.Int64, value int64)
TEXT ·Store64(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), DI
	MOVQ value+8(FP), AX
	MOVQ AX, (DI)
	RET

// func Prefetch(at unsafe.Pointer)
TEXT ·Prefetch(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET

// func storeSet(to *atomic.Uint64, from *uint64, set uint64)
//
//	DI  to, SI  from, AX  what is left of set, CX  its first bit
TEXT ·storeSet(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ set+16(FP), AX

next:
	BSFQ AX, CX
	JEQ  done
	MOVQ (SI)(CX*8), DX
	MOVQ DX, (DI)(CX*8)
	LEAQ -1(AX), DX
	ANDQ DX, AX
	JMP  next

done:
	RET
