//go:build !purego && !race

#include "go_asm.h"
#include "textflag.h"

// Readers on other cores must see these stores in this order. The processor keeps it. An atomic store of Go would also wait until all earlier
// stores have reached the cache, which nothing here needs, and which takes longer than the rest of an insertion.

// func begin(e *entry, k *Key, now int64)
//
//	DI  e, SI  k, AX  the state
TEXT ·begin(SB), NOSPLIT, $0-24
	MOVQ  e+0(FP), DI
	MOVQ  k+8(FP), SI
	MOVQ  now+16(FP), DX
	MOVOU 0(SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVQ  entry_state(DI), AX
	BTRQ  $31, AX               // the live bit
	MOVQ  AX, entry_state(DI)
	MOVOU X0, (entry_key+0)(DI)
	MOVOU X1, (entry_key+16)(DI)
	MOVOU X2, (entry_key+32)(DI)
	MOVQ  DX, entry_lastSeen(DI)
	SHRQ  $32, AX
	LEAQ  3(AX)(AX*1), AX       // the next generation, and the live bit
	SHLQ  $31, AX
	MOVQ  AX, entry_state(DI)
	RET

// func fill(b *bucket, slot int, tag uint16, x Index)
TEXT ·fill(SB), NOSPLIT, $0-24
	MOVQ    b+0(FP), DI
	MOVQ    slot+8(FP), CX
	MOVWLZX tag+16(FP), AX
	MOVL    x+20(FP), DX
	MOVL    DX, bucket_flows(DI)(CX*4)
	MOVW    AX, bucket_tags(DI)(CX*2)
	RET
