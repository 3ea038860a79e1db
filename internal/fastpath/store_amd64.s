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
