//go:build !purego && !race

#include "textflag.h"

// func store64(word *atomic.Int64, value int64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), DI
	MOVQ value+8(FP), AX
	MOVQ AX, (DI)
	RET
